//! Where everything lies.

use crate::settings::Settings;
use crate::shape::redundancy::Redundancy;
use crate::shape::{Area, Layout};

/// See the module. It does not change.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) layout: Layout,
    /// Where the layout's sectors lie on the drives.
    pub(crate) area: Area,
    /// Absent where nothing is redundant.
    pub(crate) code: Option<Redundancy>,
}

impl Geometry {
    pub(super) fn new(settings: &Settings) -> Self {
        let layout = Layout::new(settings.spec, settings.area.size());
        Self { code: Redundancy::of(&layout), layout, area: settings.area.clone() }
    }
}
