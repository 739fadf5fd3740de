import type { HttpResponse } from '../response.ts';
import type { Deployment } from '../deployment.ts';
import { expectOf, hasStatus, isRejected } from '../expectations.ts';
import { section } from '../promised.ts';
import { ME, PROTECTED, V2_LOGIN } from './common.ts';

const HEADERS = ['X-SESSION-ID', 'X-SESSIONID'] as const;

/** Authentication by session key. */
export const sessionKey = section('5.3', 'Session key', [
  ...HEADERS.map((name) => ({
    id: name.toLowerCase(),
    endpoint: name,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: `A protected endpoint reads the session key from the header ${name}.`,
    check: async (at: Deployment) => {
      const headers = { [name]: await at.newSessionKey() };
      // The interface does not name these endpoints.
      const responses: HttpResponse[] = [];
      for (const path of PROTECTED) responses.push(await at.send('GET', path, { headers }));
      const last = await at.send('POST', V2_LOGIN, { headers });
      expectOf(
        last,
        '200 from some protected endpoint',
        [...responses, last].some(({ status }) => status === 200),
        'none',
      );
    },
  })),
  {
    id: 'unknown',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: [],
    says: 'An unknown key does not authenticate the caller.',
    check: async (at) => isRejected(await at.send('GET', ME, { sessionKey: 'A'.repeat(43) })),
  },
  {
    id: 'ended',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: ['user'],
    says: 'The key of an ended session does not authenticate the caller.',
    check: async (at) => {
      const key = await at.newSessionKey();
      await at.send('POST', at.session('logout'), { json: { session_key: key } });
      isRejected(await at.send('GET', ME, { sessionKey: key }));
    },
  },
  ...PROTECTED.map((path) => ({
    id: `opens-${path.split('/').filter(Boolean).join('-')}`,
    endpoint: `GET ${path}`,
    level: 'decision' as const,
    needs: ['user'] as const,
    says: 'A session key authenticates the caller like a token.',
    check: async (at: Deployment) =>
      hasStatus(await at.send('GET', path, { sessionKey: await at.sessionKey() }), 200),
  })),
  {
    id: 'two-keys',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'Two headers with different valid keys return 401.',
    check: async (at) => {
      const headers = { 'X-SESSIONID': await at.newSessionKey() };
      hasStatus(await at.send('GET', ME, { sessionKey: await at.sessionKey(), headers }), 401);
    },
  },
  {
    id: 'authorization-decides',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'Authorization takes precedence: a wrong token with a valid key returns 401.',
    check: async (at) =>
      hasStatus(
        await at.send('GET', ME, { token: 'wrong', sessionKey: await at.sessionKey() }),
        401,
      ),
  },
]);
