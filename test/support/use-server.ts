import { afterAll, beforeAll } from './jest.ts';
import { makeDataDir, removeDirectory } from './directories.ts';
import { freePort, startServer, stopServer, type RunningServer } from './process.ts';

/** The server of a test file, and its data directory. */
type UsedServer = Pick<RunningServer, 'url'> & { dataDir: string };

/**
 * Starts a server with demo data for the tests of a file or of a describe block, on a fixed port,
 * because links in responses contain it.
 */
export function useServer(env: Record<string, string> = {}): UsedServer {
  let server: RunningServer | undefined;
  let dataDir = '';
  beforeAll(async () => {
    dataDir = await makeDataDir();
    server = await startServer({ DATA_DIR: dataDir, PORT: String(await freePort()), ...env });
  });
  afterAll(async () => {
    if (server) await stopServer(server);
    await removeDirectory(dataDir);
  });
  return {
    get url() {
      if (!server) throw new Error('The server is not running');
      return server.url;
    },
    get dataDir() {
      return dataDir;
    },
  };
}
