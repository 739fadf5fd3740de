import { partsOf, type Deployment, type Values } from '../deployment.ts';
import { expectOf, hasStatus } from '../expectations.ts';
import { NotTried, section } from '../promised.ts';
import { isRefusedAsToken, issued, secondsFromNow } from './5.1-bearer-token.ts';
import { ME } from './common.ts';

const HOUR = 3600;
const ISSUED = 'POST /token';
const TAKEN = `GET ${ME}`;

/** Tokens that are signed as they should be and refused all the same, by the claims or header members that are not as issued. */
const REFUSED: { id: string; level: 'interface' | 'decision'; says: string; claims?: () => Values; header?: Values }[] = [
  { id: 'aud', level: 'interface', says: 'names another audience', claims: () => ({ aud: 'another-audience' }) },
  { id: 'aud-list', level: 'interface', says: 'names other audiences', claims: () => ({ aud: ['another-audience', 'and-another'] }) },
  { id: 'exp', level: 'interface', says: 'expired an hour ago', claims: () => ({ exp: secondsFromNow(-HOUR) }) },
  { id: 'exp-text', level: 'decision', says: 'has an exp that is no number', claims: () => ({ exp: String(secondsFromNow(HOUR)) }) },
  {
    id: 'nbf',
    level: 'interface',
    says: 'is not yet good for an hour',
    claims: () => ({ nbf: secondsFromNow(HOUR), exp: secondsFromNow(2 * HOUR) }),
  },
  { id: 'nbf-text', level: 'decision', says: 'has an nbf that is no number', claims: () => ({ nbf: 'now' }) },
  {
    id: 'iat-ahead',
    level: 'decision',
    says: 'was issued an hour from now',
    claims: () => ({ iat: secondsFromNow(HOUR), exp: secondsFromNow(2 * HOUR) }),
  },
  { id: 'no-time', level: 'decision', says: 'has neither exp nor iat', claims: () => ({ exp: undefined, iat: undefined }) },
  { id: 'crit', level: 'decision', says: 'names in crit what has to be understood', header: { crit: ['contract'], contract: true } },
];

/** Tokens that are taken, though they are not as issued. */
const ACCEPTED: { id: string; level: 'interface' | 'decision'; says: string; claims?: () => Values; header?: Values }[] = [
  { id: 'as-issued', level: 'interface', says: 'was signed by another who shares the secret' },
  { id: 'past-nbf', level: 'interface', says: 'is good since an hour', claims: () => ({ nbf: secondsFromNow(-HOUR) }) },
  { id: 'optional', level: 'interface', says: 'has no jti and no scopes', claims: () => ({ jti: undefined, scopes: undefined }) },
  { id: 'no-sid', level: 'decision', says: 'belongs to no session', claims: () => ({ sid: undefined }) },
  { id: 'typ', level: 'interface', says: 'has another typ in its header', header: { typ: 'JOSE' } },
  { id: 'cty', level: 'decision', says: 'has the cty JWT in its header', header: { cty: 'JWT' } },
];

/** The registered claims and header parameters of a JWT. */
export const claims = section('5.2', 'Registered claims and header parameters of a JWT', [
  {
    id: 'types',
    row: ISSUED,
    level: 'interface',
    needs: ['user'],
    says: 'The claims of an issued token are of their kinds: times are numbers, aud a text or a list of texts, the others texts.',
    check: async (at) => {
      const [answer, , { exp, nbf, iat, iss, sub, jti, aud }] = await issued(at);
      const are = (type: string, values: unknown[]) => values.every((value) => value === undefined || typeof value === type);
      const isRight = are('number', [exp, nbf, iat]) && are('string', [iss, sub, jti, ...[aud].flat()]);
      expectOf(answer, 'claims of the right kinds', isRight, `a token with ${JSON.stringify({ exp, nbf, iat, iss, sub, jti, aud })}`);
    },
  },
  {
    id: 'jti',
    row: ISSUED,
    level: 'interface',
    needs: ['user'],
    says: 'Where issued tokens have a jti, no two have the same.',
    check: async (at) => {
      const [answer, , { jti }] = await issued(at);
      if (jti === undefined) throw new NotTried('issued tokens have no jti');
      const second = await at.ask('POST', '/token', { form: { ...at.user } });
      const [, { jti: other }] = partsOf(String(second.member('access_token')));
      expectOf(answer, 'another jti each time', jti !== other, 'the same');
    },
  },
  {
    id: 'issued',
    row: ISSUED,
    level: 'decision',
    needs: ['user'],
    says: 'An issued token has sub, iat, exp, jti, sid and scopes, and the typ JWT.',
    check: async (at) => {
      const [answer, { typ }, found] = await issued(at);
      const missing = ['sub', 'iat', 'exp', 'jti', 'sid', 'scopes'].filter((name) => found[name] === undefined);
      expectOf(answer, 'all of these claims', missing.length === 0, `a token without ${missing.join(', ')}`);
      expectOf(answer, 'the typ JWT', typ === 'JWT', JSON.stringify(typ));
    },
  },
  ...REFUSED.map(({ id, level, says, claims: changed = () => ({}), header }) => ({
    id,
    row: TAKEN,
    level,
    needs: ['user', 'secret'] as const,
    says: `A token that ${says} is refused.`,
    check: async (at: Deployment) => isRefusedAsToken(await at.ask('GET', ME, { token: await at.forge(changed(), header) })),
  })),
  ...ACCEPTED.map(({ id, level, says, claims: changed = () => ({}), header }) => ({
    id,
    row: TAKEN,
    level,
    needs: ['user', 'secret'] as const,
    says: `A token that ${says} is taken.`,
    check: async (at: Deployment) => hasStatus(await at.ask('GET', ME, { token: await at.forge(changed(), header) }), 200),
  })),
  {
    id: 'sub-case',
    row: TAKEN,
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'The claim sub is case-sensitive.',
    check: async (at) => {
      const { username } = at.user;
      const other = username === username.toUpperCase() ? username.toLowerCase() : username.toUpperCase();
      if (other === username) throw new NotTried('the username has no letters');
      isRefusedAsToken(await at.ask('GET', ME, { token: await at.forge({ sub: other, sid: undefined }) }));
    },
  },
  {
    id: 'iss',
    row: TAKEN,
    level: 'decision',
    needs: ['user', 'secret'],
    says: 'Where issued tokens name their issuer, a token of another issuer is refused.',
    check: async (at) => {
      const [, , { iss }] = await issued(at);
      if (typeof iss !== 'string') throw new NotTried('issued tokens name no issuer');
      isRefusedAsToken(await at.ask('GET', ME, { token: await at.forge({ iss: `${iss}/other` }) }));
    },
  },
]);
