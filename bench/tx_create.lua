-- A script for wrk: POST /api/v1/tx with a new request id each time. It reads from the environment:
--   SIGNERS  a file of addresses, one per line
--   RUN      makes the request ids unique
dofile(os.getenv("HERE") .. "/wrk_post.lua")
local signers = {}
for line in io.lines(os.getenv("SIGNERS")) do signers[#signers + 1] = line end
local run = os.getenv("RUN")
local count = 0

post("/api/v1/tx", function()
  count = count + 1
  local signer = signers[count % #signers + 1]
  return string.format(
    '{"signer":"%s","requestId":"%s-%d","payload":{"to":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","value":"1","gas":21000}}',
    signer, run, count)
end)
