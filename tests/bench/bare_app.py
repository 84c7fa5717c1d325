"""What the same stack does with an upload when it only parses and hashes it: the yardstick of the upload benchmark.

`python -m tests.bench.bare_app PORT` serves on the loopback.
"""

import hashlib
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def take(request: Request) -> JSONResponse:
    """Parse the form, or take the body as it is; hash it, forget it."""
    if not request.headers["content-type"].startswith("multipart/"):
        return JSONResponse({"sha256": hashlib.sha256(await request.body()).hexdigest()}, status_code=201)
    async with request.form() as form:
        file = form["file"]
        if not isinstance(file, UploadFile):
            return JSONResponse({"error": "no file"}, status_code=400)
        digest = hashlib.sha256(await file.read()).hexdigest()
    return JSONResponse({"sha256": digest}, status_code=201)


app = Starlette(routes=[Route("/{path:path}", take, methods=["POST", "PUT"])])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), http="h11", loop="asyncio", access_log=False)
