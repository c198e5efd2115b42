import { expect, it } from 'vitest';
import { nameUuid, sourceEventId } from './source-event.ts';

it('gives the id of RFC 9562 appendix A.4', () => {
  const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
  expect(nameUuid('www.example.com', dns)).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
});

it('equal facts have equal ids and different facts have different ids', () => {
  const fact = { category: 'Security', eventKey: 'account-locked', platformUserId: 'a', naturalKey: '1' };
  expect(sourceEventId(fact)).toBe(sourceEventId({ ...fact }));
  const others = [
    { ...fact, category: 'Membership' },
    { ...fact, eventKey: 'refresh-reuse' },
    { ...fact, platformUserId: 'b' },
    { ...fact, naturalKey: '2' },
  ];
  expect(new Set([fact, ...others].map(sourceEventId)).size).toBe(5);
});
