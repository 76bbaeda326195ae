# The service alone. What it keeps lives in /data.
FROM python:3.11.14-slim-bookworm AS packages
COPY requirements /requirements
RUN python -m venv /packages \
    && /packages/bin/pip install --no-cache-dir --require-hashes -r /requirements/run.txt

FROM python:3.11.14-slim-bookworm
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
USER opora
VOLUME /data
EXPOSE 1416
ENTRYPOINT ["python", "-m", "cli"]
CMD ["serve"]
