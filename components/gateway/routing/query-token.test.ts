import { expect, it } from 'vitest';
import { judgeQueryToken } from './query-token.ts';

const elsewhere = 'An access token must be sent in the Authorization header.';

it.each([
  ['', undefined, undefined],
  ['?page=1&x=access_token', undefined, undefined],
  ['?access_token=a', elsewhere, undefined],
  ['?id=1&access_token=', elsewhere, undefined],
  ['?%61ccess%5ftoken=a', elsewhere, undefined],
  ['?access_token', elsewhere, undefined],
  ['?access_token=a&access_token=b', elsewhere, 'The query has more than one access token.'],
  ['?access_token=a&%61ccess_token=b', elsewhere, 'The query has more than one access token.'],
])('judges %j', (search, atOthers, atHubs) => {
  expect(judgeQueryToken(search, false)).toBe(atOthers);
  expect(judgeQueryToken(search, true)).toBe(atHubs);
});
