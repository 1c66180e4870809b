-- wrk: POST /api/v1/tx, a new request each time. SIGNERS: a file of addresses, one a line; KEY: the API key; ITEMS:
-- how many creates are in one request (1: single creates, else /api/v1/tx/batch); RUN: makes request ids unique.
local signers = {}
for line in io.lines(os.getenv("SIGNERS")) do signers[#signers + 1] = line end
local key, run = os.getenv("KEY"), os.getenv("RUN")
local items = tonumber(os.getenv("ITEMS") or "1")
local count = 0

local function one()
  count = count + 1
  local signer = signers[count % #signers + 1]
  return string.format(
    '{"signer":"%s","requestId":"%s-%d","payload":{"to":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","value":"1","gas":21000}}',
    signer, run, count)
end

local headers = { ["Authorization"] = "Bearer " .. key, ["Content-Type"] = "application/json" }

function request()
  if items == 1 then return wrk.format("POST", "/api/v1/tx", headers, one()) end
  local bodies = {}
  for i = 1, items do bodies[i] = one() end
  return wrk.format("POST", "/api/v1/tx/batch", headers, '{"items":[' .. table.concat(bodies, ",") .. "]}")
end


function done(summary, latency)
  io.write(string.format("requests %d errors %d duration_us %d p50_us %d p99_us %d\n", summary.requests,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
