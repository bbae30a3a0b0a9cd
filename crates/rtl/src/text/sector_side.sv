    // A third side gives the coefficients.
    localparam int COEFFICIENTS = @COEFFICIENTS@;
    logic [15:0] coefficients [0:COEFFICIENTS-1];
    int coefficient_at = 0, c_next;
    logic coefficient_on = 0;
    wire coefficient_ready;
    initial $readmemh("coefficients.hex", coefficients);
    always @(posedge clk) begin
        if (restarts) begin
            coefficient_at <= 0; coefficient_on <= 0;
        end else if (cycle > 4) begin
            c_next = coefficient_at + ((coefficient_on && coefficient_ready) ? 1 : 0);
            if (!(coefficient_on && !coefficient_ready)) coefficient_on <= c_next < COEFFICIENTS && goes(chance[2:0]);
            coefficient_at <= c_next;
        end
    end
    sector #(.BEATS_LOG(@BEATS_LOG@)) engine (
        .clk, .reset,
        .coefficient_valid(coefficient_on), .coefficient_ready,
        .coefficient(coefficients[coefficient_at][@SYMBOL_TOP@:0]),
        .in_valid(in_on), .in_ready, .in_data(ins[in_at][127:0]), .in_last,
        .in_rows(ins[in_at][135:128]), .out_valid, .out_ready, .out_data);
