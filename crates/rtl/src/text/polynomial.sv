// The polynomial encoder: the remainder of one codeword's data, LANES symbols of BITS bits a cycle.
module polynomial (
    input logic clk, input logic reset,
    // The first symbol in the lowest bits. The first beat of a codeword has zeroes before its symbols if they
    // do not fill it; `in_last` with its last beat.
    input logic in_valid, output logic in_ready,
    input logic [@LANES@*@BITS@-1:0] in_data, input logic in_last,
    // All redundant symbols, the first in the lowest bits.
    output logic out_valid, input logic out_ready, output logic [@REDUNDANT@*@BITS@-1:0] out_data
);
    localparam int BEAT = @LANES@ * @BITS@;
    localparam int REMAINDER = @REDUNDANT@ * @BITS@;
    localparam int USED = REMAINDER > BEAT ? REMAINDER : BEAT;

    logic [REMAINDER-1:0] remainder, next;
    logic first;
    assign in_ready = !reset && (!out_valid || out_ready);
    wire take = in_valid && in_ready;
    // What the last beat left is where it is shown: a codeword's first beat begins without it.
    wire [REMAINDER-1:0] held = remainder & {REMAINDER{!first}};
    wire [USED-1:0] used = USED'(in_data) ^ USED'(held);
@GATES@
    assign out_data = remainder;
    always_ff @(posedge clk) begin
        if (take) remainder <= next;
        if (reset) begin
            first <= 1'b1;
            out_valid <= 1'b0;
        end else if (take) begin
            first <= in_last;
            out_valid <= in_last;
        end else if (out_ready) begin
            out_valid <= 1'b0;
        end
    end
endmodule
