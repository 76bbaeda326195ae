# The service alone. What it keeps lives in /data.
# The base is pinned by its full version. A registry's digest pins it for good: docker build --build-arg
# BASE=python:3.11.14-slim-bookworm@sha256:…, as `docker buildx imagetools inspect` tells it.
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS packages
COPY requirements /requirements
RUN python -m venv /packages \
    && /packages/bin/pip install --no-cache-dir --require-hashes -r /requirements/run.txt

FROM ${BASE}
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Opora" \
    org.opencontainers.image.description="Answers customers' questions from a company's knowledge base alone, cited and checked" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
RUN useradd --system --uid 10001 --no-create-home opora && install --directory --owner=opora /data
COPY --from=packages /packages /packages
WORKDIR /opora
COPY LICENSE app.py cli.py settings.py ./
COPY pipelines pipelines
COPY components components
COPY tenants tenants
COPY evaluation evaluation
COPY ui ui
ENV PATH=/packages/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPORA_DATA_DIR=/data \
    OPORA_HOST=0.0.0.0
USER 10001
VOLUME /data
EXPOSE 1416
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:1416/readyz', timeout=4)"]
ENTRYPOINT ["python", "-m", "cli"]
CMD ["serve"]
