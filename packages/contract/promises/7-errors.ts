import type { HttpResponse } from '../response.ts';
import type { Deployment } from '../deployment.ts';
import {
  hasBearerChallenge,
  expectOf,
  hasHeader,
  hasOnly,
  hasStatus,
  hasFieldErrors,
  hasMessage,
} from '../expectations.ts';
import { section, type Need } from '../promised.ts';
import {
  ME,
  MESSAGES,
  V1_PRODUCT,
  V1_PRODUCTS,
  V2_PRODUCTS,
  wrongForm,
  wrongLogout,
  wrongSessionLogin,
} from './common.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** The table of errors of the interface. */
const CONDITIONS: {
  id: string;
  endpoint: string;
  needs: readonly Need[];
  says: string;
  send: (at: Deployment) => Promise<HttpResponse>;
  status: number;
  member: 'detail' | 'data';
  message: RegExp;
  isChallenged: boolean;
}[] = [
  {
    id: 'wrong-credentials',
    endpoint: 'POST /token',
    needs: [],
    says: 'A wrong username or password: 401, detail, WWW-Authenticate: Bearer.',
    send: (at) => wrongForm(at, '/token'),
    status: 401,
    member: 'detail',
    message: MESSAGES.wrongCredentials,
    isChallenged: true,
  },
  {
    id: 'bad-token',
    endpoint: `GET ${ME}`,
    needs: [],
    says: 'An invalid token: 401, detail, WWW-Authenticate: Bearer.',
    send: (at) => at.send('GET', ME, { token: 'wrong' }),
    status: 401,
    member: 'detail',
    message: MESSAGES.badToken,
    isChallenged: true,
  },
  {
    id: 'disabled',
    endpoint: `GET ${ME}`,
    needs: ['user', 'disabled user', 'secret'],
    says: 'A disabled user: 400, detail.',
    send: async (at) =>
      at.send('GET', ME, {
        token: await at.forge({ sub: at.disabledUser.username, sid: undefined }),
      }),
    status: 400,
    member: 'detail',
    message: MESSAGES.inactivity,
    isChallenged: false,
  },
  {
    id: 'wrong-session-login',
    endpoint: 'POST {session}/login',
    needs: [],
    says: 'Wrong credentials at the session login: 401, data.',
    send: wrongSessionLogin,
    status: 401,
    member: 'data',
    message: MESSAGES.wrongCredentials,
    isChallenged: false,
  },
  {
    id: 'wrong-session-key',
    endpoint: 'POST {session}/logout',
    needs: [],
    says: 'An unknown session key at logout: 401, data.',
    send: wrongLogout,
    status: 401,
    member: 'data',
    message: MESSAGES.badKey,
    isChallenged: false,
  },
];

/** Malformed requests, to endpoints that change nothing. */
const MALFORMED: {
  id: string;
  says: string;
  status: number;
  endpoint: string;
  send: (at: Deployment) => Promise<HttpResponse>;
}[] = [
  {
    id: 'no-json',
    says: 'Invalid JSON',
    status: 400,
    endpoint: 'POST {session}/logout',
    send: (at) =>
      at.send('POST', at.session('logout'), { body: '{"session_key":', headers: JSON_TYPE }),
  },
  {
    id: 'content-type',
    says: 'A body of another content type',
    status: 415,
    endpoint: 'POST {session}/logout',
    send: (at) =>
      at.send('POST', at.session('logout'), {
        body: '<session_key/>',
        headers: { 'Content-Type': 'application/xml' },
      }),
  },
  {
    id: 'charset',
    says: 'A body of another charset',
    status: 415,
    endpoint: 'POST {session}/logout',
    send: (at) =>
      at.send('POST', at.session('logout'), {
        body: '{}',
        headers: { 'Content-Type': 'application/json; charset=utf-16' },
      }),
  },
  {
    id: 'too-large',
    says: 'A body that is too large',
    status: 413,
    endpoint: 'POST {session}/logout',
    send: (at) =>
      at.send('POST', at.session('logout'), {
        body: JSON.stringify({ session_key: 'x'.repeat(20_000) }),
        headers: JSON_TYPE,
      }),
  },
];

/** Missing or wrong fields, and the location of each in the response. */
const FIELDS: {
  id: string;
  endpoint: string;
  says: string;
  send: (at: Deployment) => Promise<HttpResponse>;
  names: string[][];
}[] = [
  {
    id: 'missing-form',
    endpoint: 'POST /token',
    says: 'Missing fields of a form',
    send: (at) => at.send('POST', '/token', { form: {} }),
    names: [
      ['body', 'username'],
      ['body', 'password'],
    ],
  },
  {
    id: 'missing-json',
    endpoint: 'POST {session}/login',
    says: 'Missing fields of a JSON body',
    send: (at) => at.send('POST', at.session('login'), { json: {} }),
    names: [
      ['body', 'username'],
      ['body', 'password'],
    ],
  },
  {
    id: 'wrong-type',
    endpoint: 'POST {session}/logout',
    says: 'A field that is not text',
    send: (at) => at.send('POST', at.session('logout'), { json: { session_key: 1 } }),
    names: [['body', 'session_key']],
  },
  {
    id: 'wrong-query',
    endpoint: `GET ${V2_PRODUCTS}`,
    says: 'A parameter that is not a number',
    send: (at) => at.send('GET', `${V2_PRODUCTS}?page=x`),
    names: [['query', 'page']],
  },
];

/** Responses to errors. */
export const errors = section('7', 'Errors', [
  ...CONDITIONS.map(({ send, status, member, message, isChallenged, ...promised }) => ({
    ...promised,
    level: 'interface' as const,
    check: async (at: Deployment) => {
      const response = await send(at);
      hasStatus(response, status);
      hasMessage(response, member, message);
      if (isChallenged) hasBearerChallenge(response);
    },
  })),
  ...CONDITIONS.map(({ id, endpoint, needs, send, member }) => ({
    id: `${id}-shape`,
    endpoint,
    level: 'decision' as const,
    needs,
    says: `The body has ${member} only, as application/json.`,
    check: async (at: Deployment) => {
      const response = await send(at);
      hasOnly(response, response.body, member);
      hasHeader(response, 'Content-Type', /^application\/json\b/);
    },
  })),
  ...MALFORMED.map(({ id, says: input, status, endpoint, send }) => ({
    id,
    endpoint,
    level: 'decision' as const,
    needs: [],
    says: `${input} returns ${status} with data.`,
    check: async (at: Deployment) => {
      const response = await send(at);
      hasStatus(response, status);
      hasMessage(response, 'data', /./, 'any message');
    },
  })),
  ...FIELDS.map(({ id, endpoint, says: input, send, names }) => ({
    id,
    endpoint,
    level: 'decision' as const,
    needs: [],
    says: `${input} return 422 with a list of {type, loc, msg}.`.replace(
      /^(A .*?) return /,
      '$1 returns ',
    ),
    check: async (at: Deployment) => hasFieldErrors(await send(at), ...names),
  })),
  {
    id: 'no-echo',
    endpoint: 'POST {session}/login',
    level: 'decision',
    needs: [],
    says: 'Input is not echoed.',
    check: async (at) => {
      const response = await at.send('POST', at.session('login'), {
        json: { username: ['echo-me'], password: ['echo-me'] },
      });
      hasStatus(response, 422);
      expectOf(response, 'no echo', !response.text.includes('echo-me'));
    },
  },
  {
    id: 'problem',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: [],
    says: 'With Accept: application/problem+json, the body has type, title, status, detail and code.',
    check: async (at) => {
      const response = await at.send('GET', ME, {
        headers: { Accept: 'application/problem+json' },
      });
      hasStatus(response, 401);
      hasHeader(response, 'Content-Type', /^application\/problem\+json\b/);
      hasOnly(response, response.body, 'type', 'title', 'status', 'detail', 'code');
    },
  },
  ...[V1_PRODUCTS, V1_PRODUCT].map((path) => ({
    id: `head-or-get-${path === V1_PRODUCT ? 'product' : 'products'}`,
    endpoint: `HEAD ${path}`,
    level: 'decision' as const,
    needs: [],
    says:
      path === V1_PRODUCT
        ? 'HEAD and GET of a path with POST only return 405.'
        : 'HEAD returns 200 without the list.',
    check: async (at: Deployment) => {
      const head = await at.send('HEAD', path);
      hasStatus(head, path === V1_PRODUCT ? 405 : 200);
      expectOf(head, 'no body', head.text === '');
      if (path === V1_PRODUCT) hasStatus(await at.send('GET', path), 405);
    },
  })),
]);
