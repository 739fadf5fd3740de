import { isDeepStrictEqual } from 'node:util';
import { memberOf } from '../response.ts';
import { hasBearerChallenge, expectOf, isError, listOf, pageOf } from '../expectations.ts';
import { section } from '../promised.ts';
import { getPage, needsEntries, USERS } from './common.ts';

/** The generic example of a paginated list. */
export const paginatedUsers = section('4.4', 'Generic paginated example', [
  {
    id: 'limit-offset',
    endpoint: `GET ${USERS}`,
    level: 'interface',
    needs: ['user'],
    says: 'limit and offset select users.',
    check: async (at) => {
      await needsEntries(at, USERS, 2);
      const both = await getPage(at, USERS, 'limit=2&offset=0');
      const second = await getPage(at, USERS, 'limit=1&offset=1');
      expectOf(both, 'two users', listOf(both).length === 2);
      const [user] = listOf(second);
      expectOf(
        second,
        'the second of the first two users',
        memberOf(user, 'username') === memberOf(listOf(both)[1], 'username'),
      );
    },
  },
  {
    id: 'page',
    endpoint: `GET ${USERS}`,
    level: 'interface',
    needs: ['user'],
    says: 'page selects a page of users.',
    check: async (at) => {
      await needsEntries(at, USERS, 6);
      const first = listOf(await getPage(at, USERS, 'page=1'));
      const response = await getPage(at, USERS, 'page=2');
      const names = new Set(first.map((user) => memberOf(user, 'username')));
      const second = listOf(response);
      const isNew =
        second.length > 0 && second.every((user) => !names.has(memberOf(user, 'username')));
      expectOf(response, 'other users than on the first page', isNew);
    },
  },
  {
    id: 'envelope',
    endpoint: `GET ${USERS}`,
    level: 'decision',
    needs: ['user'],
    says: 'A page has items, count, next and previous.',
    check: async (at) => {
      for (const query of ['page=1', 'limit=2&offset=0']) pageOf(await getPage(at, USERS, query));
    },
  },
  {
    id: 'default',
    endpoint: `GET ${USERS}`,
    level: 'decision',
    needs: ['user'],
    says: 'Without parameters, the response has the first users, up to the default limit.',
    check: async (at) => {
      const part = pageOf(await getPage(at, USERS, 'offset=0'));
      const response = await getPage(at, USERS, '');
      expectOf(
        response,
        'the users of offset=0',
        isDeepStrictEqual(pageOf(response).items, part.items),
        'others',
      );
    },
  },
  {
    id: 'links',
    endpoint: `GET ${USERS}`,
    level: 'decision',
    needs: ['user'],
    says: 'next links to the next page.',
    check: async (at) => {
      await needsEntries(at, USERS, 6);
      const first = await getPage(at, USERS, 'page=1');
      const { next } = pageOf(first);
      expectOf(first, 'a next', next?.endsWith('?page=2') === true);
    },
  },
  {
    id: 'anonymous',
    endpoint: `GET ${USERS}`,
    level: 'decision',
    needs: [],
    says: 'Without credentials, the response is 401 "Not authenticated".',
    check: async (at) => {
      const response = await at.send('GET', USERS);
      isError(response, 401, { detail: 'Not authenticated' });
      hasBearerChallenge(response);
    },
  },
]);
