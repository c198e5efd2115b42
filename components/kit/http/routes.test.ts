import { describe, expect, it } from 'vitest';
import { allowedMethods } from './routes.ts';

const routes = [
  { method: 'GET', url: '/a' },
  { method: 'POST', url: '/a' },
  { method: 'GET', url: '/a/:id' },
  { method: 'GET', url: '/a/:id' },
  { method: 'PUT', url: '/files/*' },
  { method: 'GET', url: '/a/:id.json/b' },
];

describe('allowedMethods', () => {
  it.each([
    ['/a', ['GET', 'HEAD', 'POST']],
    ['/a?x=/b', ['GET', 'HEAD', 'POST']],
    ['/a/7', ['GET', 'HEAD']],
    ['/a/7.json/b', ['GET', 'HEAD']],
    ['/files/x/y', ['PUT']],
    ['/a/', ['GET', 'HEAD']],
    ['/b', []],
    ['/a/7/8', []],
    ['/', []],
  ])('of %s are %j', (url, methods) => {
    expect(allowedMethods(routes, url)).toEqual(methods);
  });
});
