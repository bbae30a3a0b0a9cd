// Plays the vectors of one run, and ends with PASS, or FAIL and where. STALLS: of 8 cycles, how many each side rests.
// After 60 cycles, or after a shorter run, the engine is reset, and all begins again.
module testbench #(parameter int STALLS = 0);
    localparam int INS = @INS@;
    localparam int OUTS = @OUTS@;
    localparam int OUT_BITS = @OUT_BITS@;
    logic clk = 0, reset = 1;
    always #1 clk = !clk;
    logic [@IN_BITS@-1:0] ins [0:INS-1];
    logic [OUT_BITS-1:0] outs [0:OUTS-1];
    int in_at = 0, out_at = 0, cycle = 0, in_first = 0, in_end = 0;
    logic in_on = 0, out_ready = 0, restarted = 0, waits = 0, ended = 0;
    logic [OUT_BITS-1:0] waiting;
    wire restarts = !restarted && (cycle == 60 || ended);
    wire in_ready, out_valid;
    wire in_last = ins[in_at][@IN_LAST@];
    wire [OUT_BITS-1:0] out_data;
    // Chance, by xorshift. Each side has bits of its own.
    logic [31:0] chance = 32'd@SEED@;
    wire [31:0] chance_1 = chance ^ (chance << 13);
    wire [31:0] chance_2 = chance_1 ^ (chance_1 >> 17);
    function automatic logic goes(input logic [2:0] bits);
        return int'(bits) >= STALLS;
    endfunction
@ENGINE@
    int i_next;
    initial begin
        $readmemh("in.hex", ins);
        $readmemh("out.hex", outs);
    end
    always @(posedge clk) begin
        cycle <= cycle + 1;
        chance <= chance_2 ^ (chance_2 << 5);
        if (cycle == 4) reset <= 0;
        if (restarts) begin
            restarted <= 1; reset <= 1; cycle <= 0; waits <= 0; ended <= 0;
            in_at <= 0; out_at <= 0; in_first <= 0; in_end <= 0; in_on <= 0; out_ready <= 0;
        end else if (cycle > 4) begin
            i_next = in_at + ((in_on && in_ready) ? 1 : 0);
            if (i_next == 1 && in_at == 0) in_first <= cycle;
            if (i_next == INS && in_at != INS && restarted) $display("in: %0d beats in %0d cycles", INS, cycle - in_first + 1);
            if (in_on && in_ready && in_last && in_end == 0) in_end <= cycle;
            if (!(in_on && !in_ready)) in_on <= i_next < INS && goes(chance[12:10]);
            in_at <= i_next;
            out_ready <= goes(chance[22:20]);
            waits <= out_valid && !out_ready;
            waiting <= out_data;
            if (waits && !(out_valid && out_data === waiting)) $fatal(1, "FAIL: @OUT@ %0d changes while it waits", out_at);
            if (out_valid && ended) $fatal(1, "FAIL: more leaves than came in");
            if (out_valid && out_ready && !ended) begin
                if (out_data !== outs[out_at]) begin
                    $fatal(1, "FAIL: @OUT@ %0d has %h and not %h", out_at, out_data, outs[out_at]);
                end
                if (out_at == 0 && restarted) $display("latency: %0d cycles", cycle - in_end);
                out_at <= out_at + 1;
                if (out_at + 1 == OUTS) begin ended <= 1; cycle <= 100; end
            end
            // What else there is would have come.
            if (ended && cycle == 200) begin $display("PASS: %0d @OUT@s", OUTS); $finish; end
            if (!ended && cycle > 40 * (INS + OUTS + @OTHERS@) + 1000) begin
                $fatal(1, "FAIL: no end; out %0d", out_at);
            end
        end
    end
endmodule
