// Plays the vectors of one run, and ends with PASS, or FAIL and where. STALLS: of 8 cycles, how many each side rests.
// After 60 cycles, or after a shorter run, the engine is reset, and all begins again.
module testbench #(parameter int STALLS = 0);
    localparam int BEATS_LOG = @BEATS_LOG@;
    localparam int COEFFICIENTS = @COEFFICIENTS@;
    localparam int INS = @INS@;
    localparam int OUTS = @OUTS@;
    logic clk = 0, reset = 1;
    always #1 clk = !clk;
    logic [15:0] coefficients [0:COEFFICIENTS-1];
    logic [143:0] ins [0:INS-1];
    logic [127:0] outs [0:OUTS-1];
    int coefficient_at = 0, in_at = 0, out_at = 0, cycle = 0, in_first = 0, in_end = 0;
    logic coefficient_on = 0, in_on = 0, out_ready = 0;
    wire coefficient_ready, in_ready, out_valid;
    wire [127:0] out_data;
    sector #(.BEATS_LOG(BEATS_LOG)) engine (
        .clk, .reset,
        .coefficient_valid(coefficient_on), .coefficient_ready,
        .coefficient(coefficients[coefficient_at][@SYMBOL_TOP@:0]),
        .in_valid(in_on), .in_ready, .in_data(ins[in_at][127:0]), .in_last(ins[in_at][136]),
        .in_rows(ins[in_at][135:128]), .out_valid, .out_ready, .out_data);
    // Chance, by xorshift. Each side has bits of its own.
    logic [31:0] chance = 32'd@SEED@;
    wire [31:0] chance_1 = chance ^ (chance << 13);
    wire [31:0] chance_2 = chance_1 ^ (chance_1 >> 17);
    function automatic logic goes(input logic [2:0] bits);
        return int'(bits) >= STALLS;
    endfunction
    logic restarted = 0, waits = 0, ended = 0;
    logic [127:0] waiting;
    int c_next, i_next;
    initial begin
        $readmemh("coefficients.hex", coefficients);
        $readmemh("in.hex", ins);
        $readmemh("out.hex", outs);
    end
    always @(posedge clk) begin
        cycle <= cycle + 1;
        chance <= chance_2 ^ (chance_2 << 5);
        if (cycle == 4) reset <= 0;
        if (!restarted && (cycle == 60 || ended)) begin
            restarted <= 1; reset <= 1; cycle <= 0; waits <= 0; ended <= 0;
            coefficient_at <= 0; coefficient_on <= 0;
            in_at <= 0; out_at <= 0; in_first <= 0; in_end <= 0; in_on <= 0; out_ready <= 0;
        end else if (cycle > 4) begin
            c_next = coefficient_at + ((coefficient_on && coefficient_ready) ? 1 : 0);
            i_next = in_at + ((in_on && in_ready) ? 1 : 0);
            if (i_next == 1 && in_at == 0) in_first <= cycle;
            if (i_next == INS && in_at != INS && restarted) $display("in: %0d beats in %0d cycles", INS, cycle - in_first + 1);
            if (in_on && in_ready && ins[in_at][136] && in_end == 0) in_end <= cycle;
            if (!(coefficient_on && !coefficient_ready)) coefficient_on <= c_next < COEFFICIENTS && goes(chance[2:0]);
            if (!(in_on && !in_ready)) in_on <= i_next < INS && goes(chance[12:10]);
            coefficient_at <= c_next;
            in_at <= i_next;
            out_ready <= goes(chance[22:20]);
            waits <= out_valid && !out_ready;
            waiting <= out_data;
            if (waits && !(out_valid && out_data === waiting)) $fatal(1, "FAIL: beat %0d changes while it waits", out_at);
            if (out_valid && ended) $fatal(1, "FAIL: more leaves than came in");
            if (out_valid && out_ready && !ended) begin
                if (out_data !== outs[out_at]) begin
                    $fatal(1, "FAIL: beat %0d is %h and not %h", out_at, out_data, outs[out_at]);
                end
                if (out_at == 0 && restarted) $display("latency: %0d cycles", cycle - in_end);
                out_at <= out_at + 1;
                if (out_at + 1 == OUTS) begin ended <= 1; cycle <= 100; end
            end
            // What else there is would have come.
            if (ended && cycle == 200) begin $display("PASS: %0d beats", OUTS); $finish; end
            if (!ended && cycle > 40 * (INS + OUTS + COEFFICIENTS) + 1000) begin
                $fatal(1, "FAIL: no end; out %0d", out_at);
            end
        end
    end
endmodule
