import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

test('W9 the server logs the cost and the duration of a hash at startup', async () => {
  await withDataDir(async (DATA_DIR) => {
    for (const cost of [10, 12]) {
      const server = await startServer({ DATA_DIR, LOG_LEVEL: 'info', BCRYPT_COST: String(cost) });
      // The measurement runs after the server starts serving.
      await new Promise<void>((done) => {
        let logged = '';
        server.child.stderr?.on(
          'data',
          (piece: Buffer) => (logged += piece.toString()).includes('auth.hash_cost') && done(),
        );
      });
      const { stderr, code } = await stopServer(server);
      const lines = stderr.split('\n').filter((line) => line.includes('"event":"auth.hash_cost"'));
      expect([code, lines.length]).toEqual([0, 1]);
      const line = JSON.parse(String(lines[0])) as { cost: number; ms: number; time: string };
      expect(line).toMatchObject({
        cost,
        ms: expect.any(Number),
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      });
    }
  });
});
