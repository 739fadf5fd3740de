import type { Answer } from '../answer.ts';
import type { Deployment } from '../deployment.ts';
import { challenges, expectOf, hasHeader, hasOnly, hasStatus, namesFields, says } from '../expectations.ts';
import { section, type Need } from '../promised.ts';
import { ME, SPEAKS, V1_PRODUCT, V1_PRODUCTS, V2_PRODUCTS, wrongForm, wrongLogout, wrongSessionLogin } from './common.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** The rows of the interface's table of errors. */
const CONDITIONS: {
  id: string;
  row: string;
  needs: readonly Need[];
  says: string;
  ask: (at: Deployment) => Promise<Answer>;
  status: number;
  member: 'detail' | 'data';
  message: RegExp;
  isChallenged: boolean;
}[] = [
  {
    id: 'wrong-credentials',
    row: 'POST /token',
    needs: [],
    says: 'A wrong username or password: 401, detail, WWW-Authenticate: Bearer.',
    ask: (at) => wrongForm(at, '/token'),
    status: 401,
    member: 'detail',
    message: SPEAKS.ofWrongCredentials,
    isChallenged: true,
  },
  {
    id: 'bad-token',
    row: `GET ${ME}`,
    needs: [],
    says: 'An invalid token: 401, detail, WWW-Authenticate: Bearer.',
    ask: (at) => at.ask('GET', ME, { token: 'wrong' }),
    status: 401,
    member: 'detail',
    message: SPEAKS.ofBadToken,
    isChallenged: true,
  },
  {
    id: 'disabled',
    row: `GET ${ME}`,
    needs: ['user', 'disabled user', 'secret'],
    says: 'A disabled user: 400, detail.',
    ask: async (at) => at.ask('GET', ME, { token: await at.forge({ sub: at.disabledUser.username, sid: undefined }) }),
    status: 400,
    member: 'detail',
    message: SPEAKS.ofInactivity,
    isChallenged: false,
  },
  {
    id: 'wrong-session-login',
    row: 'POST {session}/login',
    needs: [],
    says: 'Wrong credentials at the session login: 401, data.',
    ask: wrongSessionLogin,
    status: 401,
    member: 'data',
    message: SPEAKS.ofWrongCredentials,
    isChallenged: false,
  },
  {
    id: 'wrong-session-key',
    row: 'POST {session}/logout',
    needs: [],
    says: 'An unknown session key at logout: 401, data.',
    ask: wrongLogout,
    status: 401,
    member: 'data',
    message: SPEAKS.ofBadKey,
    isChallenged: false,
  },
];

/** What a client may send that is not as it should be, at doors that change nothing for it. */
const MALFORMED: { id: string; says: string; status: number; row: string; ask: (at: Deployment) => Promise<Answer> }[] = [
  {
    id: 'no-json',
    says: 'JSON that does not parse',
    status: 400,
    row: 'POST {session}/logout',
    ask: (at) => at.ask('POST', at.session('logout'), { body: '{"session_key":', headers: JSON_TYPE }),
  },
  {
    id: 'content-type',
    says: 'A body of another content type',
    status: 415,
    row: 'POST {session}/logout',
    ask: (at) => at.ask('POST', at.session('logout'), { body: '<session_key/>', headers: { 'Content-Type': 'application/xml' } }),
  },
  {
    id: 'charset',
    says: 'A body of another charset',
    status: 415,
    row: 'POST {session}/logout',
    ask: (at) => at.ask('POST', at.session('logout'), { body: '{}', headers: { 'Content-Type': 'application/json; charset=utf-16' } }),
  },
  {
    id: 'too-large',
    says: 'A body that is too large',
    status: 413,
    row: 'POST {session}/logout',
    ask: (at) => at.ask('POST', at.session('logout'), { body: JSON.stringify({ session_key: 'x'.repeat(20_000) }), headers: JSON_TYPE }),
  },
];

/** Fields that are missing or wrong, and where the refusal says that they stand. */
const FIELDS: { id: string; row: string; says: string; ask: (at: Deployment) => Promise<Answer>; names: string[][] }[] = [
  {
    id: 'missing-form',
    row: 'POST /token',
    says: 'Fields that a form lacks',
    ask: (at) => at.ask('POST', '/token', { form: {} }),
    names: [
      ['body', 'username'],
      ['body', 'password'],
    ],
  },
  {
    id: 'missing-json',
    row: 'POST {session}/login',
    says: 'Fields that a JSON body lacks',
    ask: (at) => at.ask('POST', at.session('login'), { json: {} }),
    names: [
      ['body', 'username'],
      ['body', 'password'],
    ],
  },
  {
    id: 'wrong-type',
    row: 'POST {session}/logout',
    says: 'A field that is no text',
    ask: (at) => at.ask('POST', at.session('logout'), { json: { session_key: 1 } }),
    names: [['body', 'session_key']],
  },
  {
    id: 'wrong-query',
    row: `GET ${V2_PRODUCTS}`,
    says: 'A parameter that is no number',
    ask: (at) => at.ask('GET', `${V2_PRODUCTS}?page=x`),
    names: [['query', 'page']],
  },
];

/** What is answered when something is wrong. */
export const errors = section('7', 'Errors', [
  ...CONDITIONS.map(({ ask, status, member, message, isChallenged, ...promised }) => ({
    ...promised,
    level: 'interface' as const,
    check: async (at: Deployment) => {
      const answer = await ask(at);
      hasStatus(answer, status);
      says(answer, member, message);
      if (isChallenged) challenges(answer);
    },
  })),
  ...CONDITIONS.map(({ id, row, needs, ask, member }) => ({
    id: `${id}-shape`,
    row,
    level: 'decision' as const,
    needs,
    says: `The body has ${member} and nothing else, as application/json.`,
    check: async (at: Deployment) => {
      const answer = await ask(at);
      hasOnly(answer, answer.body, member);
      hasHeader(answer, 'Content-Type', /^application\/json\b/);
    },
  })),
  ...MALFORMED.map(({ id, says: what, status, row, ask }) => ({
    id,
    row,
    level: 'decision' as const,
    needs: [],
    says: `${what} is answered ${status} with data.`,
    check: async (at: Deployment) => {
      const answer = await ask(at);
      hasStatus(answer, status);
      says(answer, 'data', /./, 'something');
    },
  })),
  ...FIELDS.map(({ id, row, says: what, ask, names }) => ({
    id,
    row,
    level: 'decision' as const,
    needs: [],
    says: `${what} are answered 422 with a list of {type, loc, msg}.`.replace(/^(A .*?) are/, '$1 is'),
    check: async (at: Deployment) => namesFields(await ask(at), ...names),
  })),
  {
    id: 'no-echo',
    row: 'POST {session}/login',
    level: 'decision',
    needs: [],
    says: 'What was sent is not echoed.',
    check: async (at) => {
      const answer = await at.ask('POST', at.session('login'), { json: { username: ['echo-me'], password: ['echo-me'] } });
      hasStatus(answer, 422);
      expectOf(answer, 'no echo', !answer.text.includes('echo-me'));
    },
  },
  {
    id: 'problem',
    row: `GET ${ME}`,
    level: 'decision',
    needs: [],
    says: 'A client that accepts application/problem+json gets type, title, status, detail and code.',
    check: async (at) => {
      const answer = await at.ask('GET', ME, { headers: { Accept: 'application/problem+json' } });
      hasStatus(answer, 401);
      hasHeader(answer, 'Content-Type', /^application\/problem\+json\b/);
      hasOnly(answer, answer.body, 'type', 'title', 'status', 'detail', 'code');
    },
  },
  ...[V1_PRODUCTS, V1_PRODUCT].map((path) => ({
    id: `head-or-get-${path === V1_PRODUCT ? 'product' : 'products'}`,
    row: `HEAD ${path}`,
    level: 'decision' as const,
    needs: [],
    says: path === V1_PRODUCT ? 'HEAD and GET of a path that only takes POST are answered 405.' : 'HEAD is answered 200, without the list.',
    check: async (at: Deployment) => {
      const head = await at.ask('HEAD', path);
      hasStatus(head, path === V1_PRODUCT ? 405 : 200);
      expectOf(head, 'no body', head.text === '');
      if (path === V1_PRODUCT) hasStatus(await at.ask('GET', path), 405);
    },
  })),
]);
