// The sector engine: ROWS sums of coefficient * sector over the sectors of a group, 16 bytes a cycle.
module sector #(
    parameter int ROWS = @ROWS@,
    parameter int TOWER = @TOWER@,
    parameter int BEATS_LOG = 8 // a sector has 16 << BEATS_LOG bytes
) (
    input logic clk, input logic reset,
    // The next sector's coefficients, that of row 0 first.
    input logic coefficient_valid, output logic coefficient_ready,
    input logic [8*(1+TOWER)-1:0] coefficient,
    // Sectors; `in_last` with the last beat of a group, `in_rows` beside it: how many rows leave.
    input logic in_valid, output logic in_ready,
    input logic [127:0] in_data, input logic in_last, input logic [7:0] in_rows,
    // Row 0's sector, then row 1's ..
    output logic out_valid, input logic out_ready, output logic [127:0] out_data
);
    localparam int HALVES = 1 + TOWER;
    localparam int SYMBOL = 8 * HALVES;
    localparam int ADDR = BEATS_LOG - TOWER + 1;

    // Coefficients: a chain that is filled while the sector before streams.
    logic [ROWS*SYMBOL-1:0] next; // row 0 in the lowest bits
    logic [7:0] loaded;
    wire is_loaded = loaded == 8'(ROWS);
    logic [BEATS_LOG-1:0] beat;
    logic first, bank;
    logic [1:0] full;
    wire starts = beat == '0;
    assign in_ready = !reset && !(starts && !is_loaded) && !(starts && first && full[bank]);
    wire take = in_valid && in_ready;
    assign coefficient_ready = !reset && !is_loaded;
    wire load = coefficient_valid && coefficient_ready;
    wire high = (TOWER == 1) && beat[2];
    wire [ADDR-2:0] place;
    logic [ADDR-2:0] leave_place;
    logic [BEATS_LOG-1:0] leave_beat;
    logic leave_half;
    if (TOWER == 1) begin : g_place_tower
        assign place = {beat[BEATS_LOG-1:3], beat[1:0]};
        assign leave_place = {leave_beat[BEATS_LOG-1:3], leave_beat[1:0]};
        assign leave_half = leave_beat[2];
    end else begin : g_place
        assign place = beat;
        assign leave_place = leave_beat;
        assign leave_half = 1'b0;
    end

    // Stage 1: what was taken, beside what the RAM has of its place.
    logic [127:0] data;
    logic adds, clears;
    logic [ADDR-1:0] adds_addr;
    always_ff @(posedge clk) begin
        adds <= take && !reset;
        if (take) begin
            data <= in_data;
            clears <= first && !high;
            adds_addr <= {bank, place};
        end
        if (reset) loaded <= '0;
        else if (take && starts) loaded <= '0;
        else if (load) loaded <= loaded + 8'd1;
        if (load) next <= (ROWS*SYMBOL)'({coefficient, next} >> SYMBOL);
    end

    // What leaves.
    logic leave_bank, busy_step;
    logic [7:0] leave_row, rows_of_0, rows_of_1;
    logic [ROWS-1:0] shown_row;
    logic shown_half;
    wire ends = take && in_last;
    wire leave_last = leave_beat == '1;
    wire leave_ends = busy_step && leave_last && leave_row == (leave_bank ? rows_of_1 : rows_of_0);
    assign busy_step = full[leave_bank] && (!out_valid || out_ready);
    always_ff @(posedge clk) begin
        if (reset) begin
            beat <= '0; first <= 1'b1; bank <= 1'b0; full <= '0;
            leave_bank <= 1'b0; leave_row <= 8'd1; leave_beat <= '0; out_valid <= 1'b0;
        end else begin
            if (take) begin
                beat <= beat + 1'b1;
                if (beat == '1) first <= in_last;
            end
            if (ends) begin
                bank <= !bank;
                full[bank] <= 1'b1;
                if (bank) rows_of_1 <= in_rows;
                else rows_of_0 <= in_rows;
            end
            if (busy_step) begin
                leave_beat <= leave_beat + 1'b1;
                if (leave_last) leave_row <= leave_ends ? 8'd1 : leave_row + 8'd1;
            end
            if (leave_ends) begin
                full[leave_bank] <= 1'b0;
                leave_bank <= !leave_bank;
            end
            if (busy_step) out_valid <= 1'b1;
            else if (out_ready) out_valid <= 1'b0;
        end
        if (busy_step) shown_half <= leave_half;
    end

    logic [ROWS*HALVES*128-1:0] part;
    for (genvar row = 0; row < ROWS; row++) begin : g_row
        always_ff @(posedge clk) if (busy_step) shown_row[row] <= leave_row == 8'(row + 1);
        logic [SYMBOL-1:0] active, used;
        // `active` is what the beats of a sector use, its first one from the chain.
        wire [SYMBOL-1:0] current = starts ? next[SYMBOL*row +: SYMBOL] : active;
        always_ff @(posedge clk) if (take) active <= current;
        if (TOWER == 1) begin : g_tower
            wire [7:0] c = current[7:0];
            wire [7:0] d = current[15:8];
            wire [7:0] d_l = @TIMES_L@;
            always_ff @(posedge clk) if (take) used <= high ? {c ^ d, d_l} : current;
        end else begin : g_bytes
            assign used = active;
        end
        for (genvar half = 0; half < HALVES; half++) begin : g_half
            logic [127:0] products, sum, leaving;
            lanes by (.coefficient(used[8*half +: 8]), .bytes(data), .products);
            row_ram #(.WIDTH(128), .ADDR(ADDR)) sums (
                .clk, .write(adds), .write_addr(adds_addr),
                .write_data(products ^ (sum & {128{!clears}})),
                .sum(take), .sum_addr({bank, place}), .sum_data(sum),
                .leave(busy_step), .leave_addr({leave_bank, leave_place}), .leave_data(leaving));
            wire shows = shown_row[row] && (TOWER == 0 || shown_half == 1'(half));
            assign part[128*(HALVES*row + half) +: 128] = leaving & {128{shows}};
        end
    end
    always_comb begin
        out_data = '0;
        for (int n = 0; n < ROWS * HALVES; n++) out_data |= part[128*n +: 128];
    end
endmodule
