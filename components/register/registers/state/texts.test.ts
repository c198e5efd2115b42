import { describe, expect, it } from 'vitest';
import { assertReadable } from './texts.ts';

const bad = 'a\u202eb';

describe('assertReadable', () => {
  it.each([
    ['title', { title: bad }],
    ['title', { title: ' ' }],
    ['description', { description: bad }],
    ['metadata', { metadata: { a: bad } }],
    ['metadata', { metadata: { [bad]: 'a' } }],
  ])('refuses a new %s', (member, given) => {
    const refused = {
      kind: 'invalid',
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(`^${member}: write `),
    };
    expect(() => assertReadable(given)).toThrow(expect.objectContaining(refused) as never);
  });

  it('accepts a text that is sealed already, and no similar one', () => {
    const sealed = { title: bad, description: bad, metadata: { a: bad, [bad]: 'x', toString: bad } };
    assertReadable(sealed, sealed);
    assertReadable({ ...sealed, title: 'b', metadata: { ...sealed.metadata, b: 'c' } }, sealed);
    assertReadable({}, sealed);
    for (const given of [{ metadata: { b: bad } }, { metadata: { [bad]: 'y' } }, { title: `${bad}c` }]) {
      expect(() => assertReadable(given, sealed)).toThrow('write');
    }
    expect(() => assertReadable({ metadata: { constructor: bad } }, { metadata: {} })).toThrow('write');
  });
});
