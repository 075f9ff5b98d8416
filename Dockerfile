# zarrd in a container: docker build -t zarrd . && docker run -p 8000:8000 zarrd serve s3://bucket/prefix
# Only what every builder knows: no heredocs, no COPY --link, no RUN --mount.

FROM rust:1.95 AS build
WORKDIR /build
# Dependencies change seldom: a build of an empty crate with the same manifest keeps them in a layer of their own.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src tests/it tests/bench \
 && touch src/lib.rs tests/it/main.rs tests/bench/codec.rs tests/bench/chunk.rs \
 && echo 'fn main() {}' > src/main.rs \
 && cargo build --locked --profile dist \
 && rm -r src tests target/dist/zarrd target/dist/deps/*zarrd* target/dist/.fingerprint/zarrd-*
COPY config/default.toml config/default.toml
COPY src src
# The tests and benches are not built here, but the manifest names them.
RUN mkdir -p tests/it tests/bench \
 && touch tests/it/main.rs tests/bench/codec.rs tests/bench/chunk.rs \
 && cargo build --locked --profile dist

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /build/target/dist/zarrd /usr/local/bin/zarrd
# Settings of the image lie below the user's own file, which may stand anywhere (ZARRD_CONFIG or --config), or be mounted over
# the second.
COPY config/container.toml /usr/share/zarrd/container.toml
COPY config/container.toml /etc/zarrd/zarrd.toml
ENV ZARRD_BASE_CONFIG=/usr/share/zarrd/container.toml
ENV ZARRD_CONFIG=/etc/zarrd/zarrd.toml
EXPOSE 8000
# nonroot, by number, so that Kubernetes can see that it is not root.
USER 65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/usr/local/bin/zarrd", "health"]
ENTRYPOINT ["/usr/local/bin/zarrd"]
CMD ["serve"]
