FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json tsconfig.json mikro-orm.config.ts ./
COPY src src
COPY web web
RUN npm install && npm run build && npm run web && npm prune --omit=dev

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
