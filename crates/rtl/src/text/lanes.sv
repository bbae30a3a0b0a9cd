// 16 bytes times one coefficient over GF(2^8), polynomial 0x11d.
module lanes (input logic [7:0] coefficient, input logic [127:0] bytes, output logic [127:0] products);
    function automatic logic [7:0] doubled(input logic [7:0] element);
        doubled = {element[6:0], 1'b0} ^ (element[7] ? 8'h1d : 8'h00);
    endfunction
    wire [7:0] power_1 = doubled(coefficient);
    wire [7:0] power_2 = doubled(power_1);
    wire [7:0] power_3 = doubled(power_2);
    wire [7:0] power_4 = doubled(power_3);
    wire [7:0] power_5 = doubled(power_4);
    wire [7:0] power_6 = doubled(power_5);
    wire [7:0] power_7 = doubled(power_6);
    for (genvar lane = 0; lane < 16; lane++) begin : g_lane
        assign products[8*lane +: 8] =
              (((coefficient & {8{bytes[8*lane]}}) ^ (power_1 & {8{bytes[8*lane+1]}}))
            ^ ((power_2 & {8{bytes[8*lane+2]}}) ^ (power_3 & {8{bytes[8*lane+3]}})))
            ^ (((power_4 & {8{bytes[8*lane+4]}}) ^ (power_5 & {8{bytes[8*lane+5]}}))
            ^ ((power_6 & {8{bytes[8*lane+6]}}) ^ (power_7 & {8{bytes[8*lane+7]}})));
    end
endmodule
