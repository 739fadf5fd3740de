import type { Server } from 'node:http';
import { promisify } from 'node:util';

/** Returns the number of open connections of a server. */
export function openConnections(server: Server): Promise<number> {
  return promisify(server.getConnections.bind(server))();
}
