# syntax=docker/dockerfile:1
# Builds for linux/amd64 and linux/arm64: every dependency is a wheel for both, nothing is compiled here.
#   docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.com/mcp-gateway:1.0.0 --push .

# A release is built from a digest: --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:… (deploy/images.env).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore

WORKDIR /src

# The environment that runs has no pip; one beside it, which stays in this stage, fills it.
COPY requirements.txt deploy/requirements-build.txt ./
RUN python -m venv /opt/build \
    && python -m venv --without-pip /opt/gateway \
    && /opt/build/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements-build.txt \
    && /opt/build/bin/pip --python /opt/gateway install --require-hashes --no-deps --only-binary :all: -r requirements.txt

COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY migrations migrations
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels . \
    && /opt/build/bin/pip --python /opt/gateway install --no-deps --no-index /opt/wheels/*.whl


FROM ${PYTHON_IMAGE}

ARG VERSION=1.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="mcp-gateway" \
      org.opencontainers.image.description="A multi-tenant MCP gateway: OpenAPI documents behind one HTTPS URL" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

RUN python -m pip uninstall --yes --root-user-action=ignore setuptools wheel pip \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin gateway

COPY --from=build /opt/gateway /opt/gateway

ENV PATH=/opt/gateway/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GATEWAY_HOST=0.0.0.0 \
    GATEWAY_PORT=8080 \
    GATEWAY_LOG_FORMAT=json

USER 10001:10001
WORKDIR /tmp
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"GATEWAY_PORT\"]}/readyz', timeout=3)"]
ENTRYPOINT ["gateway"]
CMD ["serve"]
