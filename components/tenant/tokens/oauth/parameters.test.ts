import { expect, it } from 'vitest';
import { OAuthError } from './oauth.ts';
import { grantScopes, parametersOfJson, parseClient, parseForm } from './parameters.ts';

const refused = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof OAuthError) return error.error;
    throw error;
  }
  return 'accepted';
};

it('parses a form, omits empty parameters, refuses repeated ones', () => {
  expect([...parseForm('a=1&b=&c=x%20y+z')]).toEqual([
    ['a', '1'],
    ['c', 'x y z'],
  ]);
  expect(refused(() => parseForm('grant_type=a&grant_type=b'))).toBe('invalid_request');
  expect(refused(() => parseForm('a=&a='))).toBe('invalid_request');
});

it('reads JSON in both spellings', () => {
  expect([...parametersOfJson({ grantType: 'password', user_name: 'x', n: 1 })]).toEqual([
    ['grant_type', 'password'],
    ['user_name', 'x'],
  ]);
  expect(refused(() => parametersOfJson({ clientId: 'a', client_id: 'b' }))).toBe('invalid_request');
  for (const value of [5, true, ['consumer'], { tier: 'consumer' }]) {
    expect(refused(() => parametersOfJson({ tier: value }))).toBe('invalid_request');
    expect(refused(() => parametersOfJson({ organizationSubdomain: value }))).toBe('invalid_request');
  }
  expect([...parametersOfJson({ tier: null, scope: '' })]).toEqual([]);
  expect(refused(() => parametersOfJson([]))).toBe('invalid_request');
  expect(refused(() => parametersOfJson(undefined))).toBe('invalid_request');
});

it('reads the client from the body or from HTTP Basic', () => {
  const basic = `Basic ${Buffer.from('service-x:a%2Bb').toString('base64')}`;
  expect(parseClient(parseForm(''), basic)).toEqual({ clientId: 'service-x', secret: 'a+b' });
  expect(parseClient(parseForm('client_id=y'), undefined)).toEqual({ clientId: 'y', secret: undefined });
  expect(refused(() => parseClient(parseForm('client_id=y'), basic))).toBe('invalid_request');
  expect(refused(() => parseClient(parseForm('client_secret=y'), basic))).toBe('invalid_request');
  expect(refused(() => parseClient(parseForm(''), undefined))).toBe('invalid_request');
  expect(refused(() => parseClient(parseForm(''), `Basic ${btoa('%:x')}`))).toBe('invalid_request');
});

it('refuses HTTP Basic that is not strict base64', () => {
  const text = Buffer.from('service-x:ab').toString('base64');
  for (const changed of [
    `${text}=`,
    `${text} `,
    ` ${text}x`,
    `${text.slice(0, 4)} ${text.slice(4)}`,
    '/w==',
    '!',
  ]) {
    expect(refused(() => parseClient(parseForm(''), `Basic ${changed}`))).toBe('invalid_request');
  }
});

it('refuses NUL at any position', () => {
  expect(refused(() => parseForm('client_id=a%00'))).toBe('invalid_request');
  expect(refused(() => parametersOfJson({ clientId: 'a\u0000' }))).toBe('invalid_request');
  expect(refused(() => parseClient(parseForm(''), `Basic ${btoa('a%00:x')}`))).toBe('invalid_request');
});

it('grants requested scopes that are allowed, all of them without a request', () => {
  expect(grantScopes(undefined, ['a', 'b'])).toEqual(['a', 'b']);
  expect(grantScopes('b b', ['a', 'b'])).toEqual(['b']);
  expect(refused(() => grantScopes('b c', ['a', 'b']))).toBe('invalid_scope');
  expect(refused(() => grantScopes(' ', ['a']))).toBe('invalid_scope');
});
