import { partsOf, type Deployment, type Values } from '../deployment.ts';
import { expectOf, hasStatus } from '../expectations.ts';
import { Skipped, section } from '../promised.ts';
import { isRejectedAsToken, issued, secondsFromNow } from './5.1-bearer-token.ts';
import { ME } from './common.ts';

const HOUR = 3600;
const ISSUED = 'POST /token';
const VERIFIED = `GET ${ME}`;

/** Signed tokens that are rejected because of changed claims or header parameters. */
const REJECTED: {
  id: string;
  level: 'interface' | 'decision';
  says: string;
  claims?: () => Values;
  header?: Values;
}[] = [
  {
    id: 'aud',
    level: 'interface',
    says: 'names another audience',
    claims: () => ({ aud: 'another-audience' }),
  },
  {
    id: 'aud-list',
    level: 'interface',
    says: 'names other audiences',
    claims: () => ({ aud: ['another-audience', 'and-another'] }),
  },
  {
    id: 'exp',
    level: 'interface',
    says: 'expired an hour ago',
    claims: () => ({ exp: secondsFromNow(-HOUR) }),
  },
  {
    id: 'exp-text',
    level: 'decision',
    says: 'has an exp that is not a number',
    claims: () => ({ exp: String(secondsFromNow(HOUR)) }),
  },
  {
    id: 'nbf',
    level: 'interface',
    says: 'becomes valid in an hour',
    claims: () => ({ nbf: secondsFromNow(HOUR), exp: secondsFromNow(2 * HOUR) }),
  },
  {
    id: 'nbf-text',
    level: 'decision',
    says: 'has an nbf that is not a number',
    claims: () => ({ nbf: 'now' }),
  },
  {
    id: 'iat-ahead',
    level: 'decision',
    says: 'has an iat an hour from now',
    claims: () => ({ iat: secondsFromNow(HOUR), exp: secondsFromNow(2 * HOUR) }),
  },
  {
    id: 'no-time',
    level: 'decision',
    says: 'has neither exp nor iat',
    claims: () => ({ exp: undefined, iat: undefined }),
  },
  {
    id: 'crit',
    level: 'decision',
    says: 'has an unknown parameter in crit',
    header: { crit: ['contract'], contract: true },
  },
];

/** Tokens that are accepted with changed claims or header parameters. */
const ACCEPTED: {
  id: string;
  level: 'interface' | 'decision';
  says: string;
  claims?: () => Values;
  header?: Values;
}[] = [
  { id: 'as-issued', level: 'interface', says: 'was signed elsewhere with the same secret' },
  {
    id: 'past-nbf',
    level: 'interface',
    says: 'became valid an hour ago',
    claims: () => ({ nbf: secondsFromNow(-HOUR) }),
  },
  {
    id: 'optional',
    level: 'interface',
    says: 'has no jti and no scopes',
    claims: () => ({ jti: undefined, scopes: undefined }),
  },
  {
    id: 'no-sid',
    level: 'decision',
    says: 'belongs to no session',
    claims: () => ({ sid: undefined }),
  },
  { id: 'typ', level: 'interface', says: 'has another typ in its header', header: { typ: 'JOSE' } },
  { id: 'cty', level: 'decision', says: 'has the cty JWT in its header', header: { cty: 'JWT' } },
];

/** The registered claims and header parameters of a JWT. */
export const claims = section('5.2', 'Registered claims and header parameters of a JWT', [
  {
    id: 'types',
    endpoint: ISSUED,
    level: 'interface',
    needs: ['user'],
    says: 'The claims of an issued token have the right types: numbers for times, a text or a list of texts for aud, texts otherwise.',
    check: async (at) => {
      const [response, , { exp, nbf, iat, iss, sub, jti, aud }] = await issued(at);
      const are = (type: string, values: unknown[]) =>
        values.every((value) => value === undefined || typeof value === type);
      const isRight =
        are('number', [exp, nbf, iat]) && are('string', [iss, sub, jti, ...[aud].flat()]);
      expectOf(
        response,
        'claims of the right types',
        isRight,
        `a token with ${JSON.stringify({ exp, nbf, iat, iss, sub, jti, aud })}`,
      );
    },
  },
  {
    id: 'jti',
    endpoint: ISSUED,
    level: 'interface',
    needs: ['user'],
    says: 'Every issued token has a different jti, if it has one.',
    check: async (at) => {
      const [response, , { jti }] = await issued(at);
      if (jti === undefined) throw new Skipped('issued tokens have no jti');
      const second = await at.send('POST', '/token', { form: { ...at.user } });
      const [, { jti: other }] = partsOf(String(second.member('access_token')));
      expectOf(response, 'a different jti for each token', jti !== other, 'the same');
    },
  },
  {
    id: 'issued',
    endpoint: ISSUED,
    level: 'decision',
    needs: ['user'],
    says: 'An issued token has sub, iat, exp, jti, sid and scopes, and typ JWT.',
    check: async (at) => {
      const [response, { typ }, found] = await issued(at);
      const missing = ['sub', 'iat', 'exp', 'jti', 'sid', 'scopes'].filter(
        (name) => found[name] === undefined,
      );
      expectOf(
        response,
        'all of these claims',
        missing.length === 0,
        `a token without ${missing.join(', ')}`,
      );
      expectOf(response, 'typ JWT', typ === 'JWT', JSON.stringify(typ));
    },
  },
  ...REJECTED.map(({ id, level, says, claims: changed = () => ({}), header }) => ({
    id,
    endpoint: VERIFIED,
    level,
    needs: ['user', 'secret'] as const,
    says: `A token that ${says} is rejected.`,
    check: async (at: Deployment) =>
      isRejectedAsToken(await at.send('GET', ME, { token: await at.forge(changed(), header) })),
  })),
  ...ACCEPTED.map(({ id, level, says, claims: changed = () => ({}), header }) => ({
    id,
    endpoint: VERIFIED,
    level,
    needs: ['user', 'secret'] as const,
    says: `A token that ${says} is accepted.`,
    check: async (at: Deployment) =>
      hasStatus(await at.send('GET', ME, { token: await at.forge(changed(), header) }), 200),
  })),
  {
    id: 'sub-case',
    endpoint: VERIFIED,
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'The claim sub is case-sensitive.',
    check: async (at) => {
      const { username } = at.user;
      const other =
        username === username.toUpperCase() ? username.toLowerCase() : username.toUpperCase();
      if (other === username) throw new Skipped('the username has no letters');
      isRejectedAsToken(
        await at.send('GET', ME, { token: await at.forge({ sub: other, sid: undefined }) }),
      );
    },
  },
  {
    id: 'iss',
    endpoint: VERIFIED,
    level: 'decision',
    needs: ['user', 'secret'],
    says: 'A token of another issuer is rejected, if issued tokens have iss.',
    check: async (at) => {
      const [, , { iss }] = await issued(at);
      if (typeof iss !== 'string') throw new Skipped('issued tokens have no iss');
      isRejectedAsToken(
        await at.send('GET', ME, { token: await at.forge({ iss: `${iss}/other` }) }),
      );
    },
  },
]);
