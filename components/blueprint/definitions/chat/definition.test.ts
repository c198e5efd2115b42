import { describe, expect, it } from 'vitest';
import { sitePermit } from '../../testing/world.ts';
import { parseDefinition } from './definition.ts';

const parsed = (text: string) => parseDefinition(JSON.parse(text));

describe('a definition of a chat', () => {
  it('is what the routes of drafts accept', () => {
    expect(parseDefinition(sitePermit())).toEqual(sitePermit());
    expect(parseDefinition({ title: 'Small' })).toEqual({
      title: 'Small',
      description: '',
      participants: [],
      actions: [],
    });
  });

  it.each([
    ['{}', /^definition\.title: /],
    ['{"title":""}', /^definition\.title: /],
    ['{"title":"x\\u202ey"}', /^definition\.title: /],
    ['{"title":"x","id":"../x"}', /^definition\.id: /],
    ['{"title":"x","participants":{}}', /^definition\.participants: /],
    ['{"title":"x","actions":[1]}', /^definition\.actions\.0: /],
    ['{"title":"x","metadata":{"a":1}}', /^definition\.metadata\.a: /],
    ['{"title":"x","__proto__":{"a":1}}', /replaces a prototype/],
    ['{"title":"x","actions":[{"a":[{"__proto__":null}]}]}', /replaces a prototype/],
    ['{"title":"x","more":{"constructor":{"prototype":{}}}}', /replaces a prototype/],
    ['{"title":"x","more":"\\ud800"}', /lone surrogate/],
    [`{"title":"x","more":${'['.repeat(65)}${']'.repeat(65)}}`, /nested deeper than 64/],
    [`{"title":"x","more":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, /nested deeper than 64/],
  ])('is refused as %s', (text, message) => {
    expect(() => parsed(text)).toThrow(message);
  });

  it('may have a member named constructor', () => {
    expect(parsed('{"title":"x","more":{"constructor":"builder"}}')).toMatchObject({
      more: { constructor: 'builder' },
    });
  });

  it('has 512 KiB of canonical JSON at most', () => {
    const empty = JSON.stringify({ more: '', title: 'x' }).length;
    const most = 'y'.repeat(524_288 - empty);
    expect(parseDefinition({ title: 'x', more: most })).toMatchObject({ more: most });
    expect(() => parseDefinition({ title: 'x', more: `${most}y` })).toThrow(
      expect.objectContaining({ code: 'DEFINITION_TOO_LARGE' }),
    );
  });
});
