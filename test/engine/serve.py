"""llama.cpp's HTTP server, out of a prebuilt Python wheel, as `llama-server` would run it.

python serve.py MODEL.gguf SLOTS         prints `listening http://127.0.0.1:PORT`; ends when its stdin does
python serve.py MODEL.gguf SLOTS PORT    listens there, and ends at SIGTERM
"""

import signal
import socket
import sys

import xllamacpp

if len(sys.argv) > 3:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # the engine's threads leave it to us
model, slots = sys.argv[1], int(sys.argv[2])
if len(sys.argv) > 3:
    port = int(sys.argv[3])
else:
    with socket.socket() as free:  # the server says 0 when it is asked for any port
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

params = xllamacpp.CommonParams()
params.model.path = model
params.port = port
params.n_parallel = slots
params.n_ctx = 8192 * slots
params.cpuparams.n_threads = 1
params.use_jinja = True
params.endpoint_slots = True
server = xllamacpp.Server(params)
print(f"listening http://127.0.0.1:{port}", flush=True)
if len(sys.argv) > 3:
    signal.sigwait({signal.SIGTERM})
else:
    sys.stdin.read()
