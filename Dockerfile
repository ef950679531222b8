# Lean: no tests, no benchmarks, not root. Other databases: more extras, as in pyproject.toml.
#   chmod a+r keys.toml  # it holds hashes only, and the container's user is not you
#   docker build -t quorum . && docker run --rm -p 8642:8642 -v quorum-home:/data -v ./keys.toml:/etc/quorum/keys.toml:ro \
#     quorum --db sample --model offline
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/quorum && /opt/quorum/bin/pip install --no-cache-dir -c constraints.txt '.[serve,postgres]'

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home quorum && install -d -o quorum -g quorum /data
COPY --from=build /opt/quorum /opt/quorum
ENV PATH=/opt/quorum/bin:$PATH QUORUM_HOME=/data PYTHONUNBUFFERED=1
USER quorum
WORKDIR /data
EXPOSE 8642
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8642/health', timeout=2)"]
ENTRYPOINT ["quorum", "serve", "--host", "0.0.0.0", "--keys", "/etc/quorum/keys.toml"]
