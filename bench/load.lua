-- Sends the requests of a file in order: each is its length in bytes on a line, then its bytes.
-- Prints the result as one line of JSON. wrk calls `init` with the arguments after `--`, once per
-- thread.
local requests, count, at = {}, 0, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  while true do
    local length = file:read("*n", 1)
    if not length then break end
    local request = file:read(length)
    count = count + 1
    requests[count] = request
  end
  file:close()
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"us":%d,"bytes":%d,"failed":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
