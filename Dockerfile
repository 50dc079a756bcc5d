# The server in a container. As it is, `docker build -t agent-workspace-mcp .` compiles it and takes uv from PyPI, checked
# against a hash. Where neither can be fetched, PROGRAMS_FROM=context takes both, finished, from the folder
# `target/image` of the build context instead. No BuildKit extension is needed.

ARG BASE_IMAGE=debian:bookworm-slim
# Not newer than BASE_IMAGE: a program finds the C library it was linked to, or a newer one.
ARG BUILDER_IMAGE=rust:1.95-slim-bookworm
# builder or context.
ARG PROGRAMS_FROM=builder


FROM ${BUILDER_IMAGE} AS builder
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-pip \
 && rm -rf /var/lib/apt/lists/*
# Hashes of the wheels for x86_64 and aarch64; pip refuses anything else.
ARG UV_VERSION=0.13.9
ARG UV_HASHES="d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375"
RUN mkdir -p /out \
 && for hash in ${UV_HASHES}; do printf ' --hash=sha256:%s' "${hash}"; done >/tmp/hashes \
 && printf 'uv==%s%s\n' "${UV_VERSION}" "$(cat /tmp/hashes)" >/tmp/uv.txt \
 && pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes --target /tmp/uv -r /tmp/uv.txt \
 && install -m 0755 /tmp/uv/bin/uv /tmp/uv/bin/uvx /out/
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package agent-workspace-mcp \
 && install -m 0755 target/release/agent-workspace-mcp /out/


FROM scratch AS context
COPY target/image/agent-workspace-mcp target/image/uv target/image/uvx /out/


FROM ${PROGRAMS_FROM} AS programs


FROM ${BASE_IMAGE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      bash ca-certificates curl fd-find git jq patch python3 ripgrep tree unzip zip \
 && ln -s /usr/bin/fdfind /usr/local/bin/fd \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log

# The name and the home are those that configurations for similar servers mount things below.
ARG UID=1000
ARG GID=1000
RUN groupadd --gid "${GID}" mcpuser \
 && useradd --uid "${UID}" --gid "${GID}" --create-home --shell /usr/sbin/nologin mcpuser \
 && install -d -m 0700 -o "${UID}" -g "${GID}" /home/mcpuser/.cache /var/lib/agent-workspace-mcp \
 && install -d -m 0755 -o "${UID}" -g "${GID}" /workspace

# Readable and executable by all, writable by none: what runs here cannot change the server that confines it.
COPY --from=programs --chown=0:0 --chmod=0555 /out/ /usr/local/bin/

# Last, so that nothing that came before is missed: no file lends its owner's or its group's rights, and nothing
# lists or signals other processes by name.
RUN find / -xdev -perm /6000 ! -type l -exec chmod ug-s {} + \
 && rm -f /usr/bin/pgrep /usr/bin/pkill /usr/bin/top /usr/bin/killall

ENV WORKSPACE=/workspace \
    NETWORK=on \
    AUDIT_DIR=/var/lib/agent-workspace-mcp \
    LANG=C.UTF-8
# Kept writable under --read-only, also by those who mount nothing there.
VOLUME ["/var/lib/agent-workspace-mcp"]
WORKDIR /workspace
USER ${UID}:${GID}
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=20s --start-period=5s --retries=2 CMD ["agent-workspace-mcp", "doctor", "--json"]
ENTRYPOINT ["agent-workspace-mcp"]

# Whoever publishes the image sets these; VERSION follows Cargo.toml.
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=""
ARG SERVER_NAME=agent-workspace-mcp
LABEL org.opencontainers.image.title="agent-workspace-mcp" \
      org.opencontainers.image.description="An MCP server that gives a language model a safe place to work" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      io.modelcontextprotocol.server.name="${SERVER_NAME}"
