//! What makes an engine of a vector: the same functions, compiled for its instructions.

/// Makes an engine of a vector: functions that are compiled for its instructions.
macro_rules! x86_engine {
    ($engine:ident, $vector:ident, $features:literal) => {
        impl Engine for $engine {
            const STEP: usize = <$vector as Vector>::SIZE;
            const BLOCK_MAX: usize = 2048;

            const HAS_VECTORS: bool = true;
            const PAD: usize = vector::PAD;

            fn factor_len(field: Field) -> usize {
                match field {
                    Field::Bytes => 1,
                    Field::Tower => sources::FACTOR_LEN_16,
                }
            }

            fn factors(field: Field, elements: &[u16], into: &mut [u64]) {
                sources::factors::<$vector>(field, elements, into);
            }

            fn mad8(mad: Mad<'_>) {
                #[target_feature(enable = $features)]
                fn compiled(mad: Mad<'_>) {
                    const WIDE: usize = <$vector as Vector>::WIDTH_8;
                    const NARROW: usize = <$vector as Vector>::NARROW_8;
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe {
                        if <$vector as Vector>::KEEPS_MULTIPLIERS {
                            tiles::mad8::<$vector>(mad);
                            return;
                        }
                        match mad.width {
                            Width::Narrow => sources::mad8::<$vector, NARROW>(mad),
                            Width::Wide => sources::mad8::<$vector, WIDE>(mad),
                        }
                    }
                }
                // SAFETY: the engine is only used when the processor has the instructions, as
                // `Kernel` sees to.
                unsafe { compiled(mad) }
            }

            fn mad16(mad: Mad<'_>) {
                #[target_feature(enable = $features)]
                fn compiled(mad: Mad<'_>) {
                    const WIDE: usize = <$vector as Vector>::WIDTH_16;
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe {
                        if <$vector as Vector>::KEEPS_MULTIPLIERS {
                            tiles::mad16::<$vector>(mad);
                            return;
                        }
                        match mad.width {
                            Width::Narrow => sources::mad16::<$vector, 1>(mad),
                            Width::Wide => sources::mad16::<$vector, WIDE>(mad),
                        }
                    }
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(mad) }
            }

            fn has_few(job: &Job<'_>) -> bool {
                job.sources.len()
                    <= match job.field {
                        Field::Bytes => FEW,
                        Field::Tower => sources::GROUP,
                    }
            }

            fn few(job: Few<'_, '_>) {
                #[target_feature(enable = $features)]
                fn compiled(job: Few<'_, '_>) {
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe {
                        match (job.job.field, job.job.sources.len()) {
                            (Field::Bytes, _) => few::few8::<$vector>(job),
                            (Field::Tower, 1) => few::few16::<$vector, 1>(job),
                            (Field::Tower, 2) => few::few16::<$vector, 2>(job),
                            (Field::Tower, 3) => few::few16::<$vector, 3>(job),
                            (Field::Tower, _) => few::few16::<$vector, 4>(job),
                        }
                    }
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(job) }
            }

            fn coset(coset: Coset<'_>) {
                #[target_feature(enable = $features)]
                fn compiled(coset: Coset<'_>) {
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe { cosets::coset::<$vector>(coset) }
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(coset) }
            }

            fn evaluate(job: Evaluation<'_>) {
                #[target_feature(enable = $features)]
                fn compiled(job: Evaluation<'_>) {
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe { cosets::evaluate::<$vector>(job) }
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(job) }
            }

            fn fetch(bytes: &[u8]) {
                for line in bytes.chunks(vector::LINE_SIZE) {
                    // SAFETY: as for `mad8`; fetching ahead accesses nothing.
                    unsafe { <$vector as Vector>::prefetch(line.as_ptr()) };
                }
            }

            fn fetch_far(bytes: &[u8]) {
                for line in bytes.chunks(vector::LINE_SIZE) {
                    // SAFETY: as for `fetch`.
                    unsafe { <$vector as Vector>::prefetch_far(line.as_ptr()) };
                }
            }

            fn copy_past(into: &mut [u8], from: &[u8]) {
                #[target_feature(enable = $features)]
                fn compiled(into: &mut [u8], from: &[u8]) {
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe { sources::copy_past::<$vector>(into, from) }
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(into, from) }
            }

            fn fence() {
                // SAFETY: every processor with these vectors has the instruction.
                unsafe { std::arch::x86_64::_mm_sfence() };
            }

            fn fetch_to_write(bytes: &[u8]) {
                for line in bytes.chunks(vector::LINE_SIZE) {
                    // SAFETY: as for `fetch`.
                    unsafe { <$vector as Vector>::prefetch_to_write(line.as_ptr()) };
                }
            }

            fn xor(into: &mut [u8], from: &[u8]) {
                #[target_feature(enable = $features)]
                fn compiled(into: &mut [u8], from: &[u8]) {
                    engine::xor(into, from);
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(into, from) }
            }

            fn acc16_size(block_size: usize) -> usize {
                3 * (block_size / 2 + vector::PAD_16)
            }

            fn fold16(acc: &[u8], into: &mut [u8]) {
                #[target_feature(enable = $features)]
                fn compiled(acc: &[u8], into: &mut [u8]) {
                    // SAFETY: this function is compiled for the vector's instructions.
                    unsafe { sources::fold16::<$vector>(acc, into) }
                }
                // SAFETY: as for `mad8`.
                unsafe { compiled(acc, into) }
            }
        }
    };
}
pub(super) use x86_engine;
