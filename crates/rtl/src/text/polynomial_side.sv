    polynomial encoder (
        .clk, .reset, .in_valid(in_on), .in_ready, .in_data(ins[in_at][@IN_LAST@-1:0]), .in_last,
        .out_valid, .out_ready, .out_data);
