import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A proxy of connections to a port of this machine, as in front of a database cluster. */
export interface TcpProxy {
  port: number;
  /** Leads new connections to this port; `cut` also ends the open ones. */
  turn(to: number, cut: boolean): void;
  close(): void;
}

/** Starts a proxy that leads to these ports in turn. */
export async function startTcpProxy(...ports: number[]): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let targets = ports;
  let connections = 0;
  const keep = (socket: Socket) =>
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => undefined));
  const server = createServer((client) => {
    const upstream = connect(targets[connections++ % targets.length] ?? 0, '127.0.0.1');
    keep(client);
    keep(upstream);
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cutAll = () => sockets.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    turn(to, cut) {
      targets = [to];
      if (cut) cutAll();
    },
    close() {
      server.close();
      cutAll();
    },
  };
}
