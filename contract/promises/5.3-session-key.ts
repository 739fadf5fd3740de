import type { Answer } from '../answer.ts';
import type { Deployment } from '../deployment.ts';
import { expectOf, hasStatus, isRefused } from '../expectations.ts';
import { section } from '../promised.ts';
import { ME, PROTECTED, V2_LOGIN } from './common.ts';

const HEADERS = ['X-SESSION-ID', 'X-SESSIONID'] as const;

/** What a session key opens, and what it does not. */
export const sessionKey = section('5.3', 'Session key', [
  ...HEADERS.map((name) => ({
    id: name.toLowerCase(),
    row: name,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: `A protected endpoint reads the session key from the header ${name}.`,
    check: async (at: Deployment) => {
      const headers = { [name]: await at.newSessionKey() };
      // Which endpoints these are, the interface does not say.
      const answers: Answer[] = [];
      for (const path of PROTECTED) answers.push(await at.ask('GET', path, { headers }));
      const last = await at.ask('POST', V2_LOGIN, { headers });
      expectOf(
        last,
        'some protected endpoint to open',
        [...answers, last].some(({ status }) => status === 200),
        'none that did',
      );
    },
  })),
  {
    id: 'unknown',
    row: `GET ${ME}`,
    level: 'interface',
    needs: [],
    says: 'With a key that no session has, the caller is unauthenticated.',
    check: async (at) => isRefused(await at.ask('GET', ME, { sessionKey: 'A'.repeat(43) })),
  },
  {
    id: 'ended',
    row: `GET ${ME}`,
    level: 'interface',
    needs: ['user'],
    says: 'With the key of a session that has ended, the caller is unauthenticated.',
    check: async (at) => {
      const key = await at.newSessionKey();
      await at.ask('POST', at.session('logout'), { json: { session_key: key } });
      isRefused(await at.ask('GET', ME, { sessionKey: key }));
    },
  },
  ...PROTECTED.map((path) => ({
    id: `opens-${path.split('/').filter(Boolean).join('-')}`,
    row: `GET ${path}`,
    level: 'decision' as const,
    needs: ['user'] as const,
    says: 'A session key opens the row as a token does.',
    check: async (at: Deployment) => hasStatus(await at.ask('GET', path, { sessionKey: await at.sessionKey() }), 200),
  })),
  {
    id: 'two-keys',
    row: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'Two headers with two keys are refused with 401, though both keys are good.',
    check: async (at) => {
      const headers = { 'X-SESSIONID': await at.newSessionKey() };
      hasStatus(await at.ask('GET', ME, { sessionKey: await at.sessionKey(), headers }), 401);
    },
  },
  {
    id: 'authorization-decides',
    row: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'Where Authorization is present it alone decides: a good key does not make up for a wrong token.',
    check: async (at) => hasStatus(await at.ask('GET', ME, { token: 'wrong', sessionKey: await at.sessionKey() }), 401),
  },
]);
