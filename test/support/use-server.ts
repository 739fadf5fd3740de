import { afterAll, beforeAll } from './jest.ts';
import { makeDataDir, removeDirectory } from './directories.ts';
import { startServer, stopServer, type RunningServer } from './process.ts';

/** Starts a server with demo data for the tests of a file or of a describe block. */
export function useServer(env: Record<string, string> = {}): Pick<RunningServer, 'url'> {
  let server: RunningServer | undefined;
  let dataDir = '';
  beforeAll(async () => {
    dataDir = await makeDataDir();
    server = await startServer({ DATA_DIR: dataDir, ...env });
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
  };
}
