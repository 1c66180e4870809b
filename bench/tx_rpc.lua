-- A script for wrk: eth_sendTransaction through POST /rpc/31337. SIGNERS is a file of addresses, one per line.
dofile(os.getenv("HERE") .. "/wrk_post.lua")
local signers = {}
for line in io.lines(os.getenv("SIGNERS")) do signers[#signers + 1] = line end
local count = 0

post("/rpc/31337", function()
  count = count + 1
  return string.format(
    '{"jsonrpc":"2.0","id":%d,"method":"eth_sendTransaction","params":[{"from":"%s","to":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","value":"0x1","gas":"0x5208"}]}',
    count, signers[count % #signers + 1])
end)
