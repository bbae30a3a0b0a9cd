// The sums of one row: written and read for summing, and read once more for what leaves.
module row_ram #(parameter int WIDTH = 128, parameter int ADDR = 4) (
    input logic clk,
    input logic write, input logic [ADDR-1:0] write_addr, input logic [WIDTH-1:0] write_data,
    input logic sum, input logic [ADDR-1:0] sum_addr, output logic [WIDTH-1:0] sum_data,
    input logic leave, input logic [ADDR-1:0] leave_addr, output logic [WIDTH-1:0] leave_data
);
    logic [WIDTH-1:0] cells [0:(1 << ADDR) - 1];
    always_ff @(posedge clk) begin
        if (write) cells[write_addr] <= write_data;
        if (sum) sum_data <= cells[sum_addr];
        if (leave) leave_data <= cells[leave_addr];
    end
endmodule
