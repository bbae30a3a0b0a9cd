// Plays the vectors of one run, and ends with PASS, or FAIL and where. STALLS: of 8 cycles, how many each side rests.
module testbench #(parameter int STALLS = 0);
    localparam int INS = @INS@;
    localparam int OUTS = @OUTS@;
    localparam int BEAT = @BEAT@;
    localparam int REMAINDER = @REMAINDER@;
    logic clk = 0, reset = 1;
    always #1 clk = !clk;
    logic [BEAT:0] ins [0:INS-1];
    logic [REMAINDER-1:0] outs [0:OUTS-1];
    int in_at = 0, out_at = 0, cycle = 0, in_first = 0, in_end = 0;
    logic in_on = 0, out_ready = 0;
    wire in_ready, out_valid;
    wire [REMAINDER-1:0] out_data;
    polynomial encoder (
        .clk, .reset, .in_valid(in_on), .in_ready, .in_data(ins[in_at][BEAT-1:0]), .in_last(ins[in_at][BEAT]),
        .out_valid, .out_ready, .out_data);
    function automatic logic goes();
        return int'($urandom & 7) >= STALLS;
    endfunction
    int i_next;
    initial begin
        $readmemh("in.hex", ins);
        $readmemh("out.hex", outs);
    end
    always @(posedge clk) begin
        cycle <= cycle + 1;
        if (cycle == 4) reset <= 0;
        if (cycle > 4) begin
            i_next = in_at + ((in_on && in_ready) ? 1 : 0);
            if (i_next == 1 && in_at == 0) in_first <= cycle;
            if (i_next == INS && in_at != INS) $display("in: %0d beats in %0d cycles", INS, cycle - in_first + 1);
            if (in_on && in_ready && ins[in_at][BEAT] && in_end == 0) in_end <= cycle;
            if (!(in_on && !in_ready)) in_on <= i_next < INS && goes();
            in_at <= i_next;
            out_ready <= goes();
            if (out_valid && out_ready) begin
                if (out_data !== outs[out_at]) begin
                    $display("FAIL: codeword %0d has %h and not %h", out_at, out_data, outs[out_at]);
                    $finish;
                end
                if (out_at == 0) $display("latency: %0d cycles", cycle - in_end);
                out_at <= out_at + 1;
                if (out_at + 1 == OUTS) begin $display("PASS: %0d codewords", OUTS); $finish; end
            end
            if (cycle > 40 * (INS + OUTS) + 1000) begin
                $display("FAIL: no end; out %0d", out_at); $finish;
            end
        end
    end
endmodule
