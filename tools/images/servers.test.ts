import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { digestOfRecipe } from './recipe.ts';
import { serverNames, servers, serverTags } from './servers.ts';

const root = resolve(import.meta.dirname, '../..');

it('tags servers by their own version and a revision', () => {
  const tags = serverTags(root);
  expect(tags['nats-server']).toMatch(/^2\.\d+\.\d+-\d+$/);
  expect(tags.postgres).toMatch(/^18\.[\w.-]+-\d+$/);
});

it.each(serverNames)(
  'the image %s is made as its revision was: otherwise raise `revision`, and record `recipe`',
  async (name) => {
    expect(await digestOfRecipe(root, name)).toBe(servers[name].recipe);
  },
);
