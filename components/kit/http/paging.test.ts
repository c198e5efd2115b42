import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { page, pageSchema, pageWindow, paging } from './paging.ts';

describe('paging', () => {
  it('starts at the first page with the default size', () => {
    expect(paging().parse({})).toEqual({ page: 1, pageSize: 20 });
    expect(paging({ defaultSize: 50, maxSize: 200 }).parse({ pageSize: '200' })).toEqual({
      page: 1,
      pageSize: 200,
    });
  });

  it('refuses sizes out of range or clamps them, by the specification document of the route', () => {
    expect(paging().safeParse({ pageSize: '101' }).success).toBe(false);
    const clamped = paging({ outOfRange: 'clamp' });
    expect(clamped.parse({ page: '0', pageSize: '1000' })).toEqual({ page: 1, pageSize: 100 });
    expect(clamped.safeParse({ page: '1.5' }).success).toBe(false);
    expect(clamped.safeParse({ page: 'x' }).success).toBe(false);
  });

  it('accepts decimal digits only, whether it refuses or clamps', () => {
    for (const query of [paging(), paging({ outOfRange: 'clamp' })]) {
      for (const text of ['0x10', '1e3', '1\n', ' 1', '+1', '-1', '1.0', '01', '٣', '']) {
        expect(query.safeParse({ page: text }).success).toBe(false);
        expect(query.safeParse({ pageSize: text }).success).toBe(false);
      }
    }
  });

  it('can be extended with filters', () => {
    const query = paging().extend({ sender: z.string().optional() });
    expect(query.parse({ sender: 'a', page: '2' })).toEqual({ sender: 'a', page: 2, pageSize: 20 });
  });

  it('covers a list exactly, whatever its length', () => {
    fc.assert(
      fc.property(fc.nat(300), fc.integer({ min: 1, max: 100 }), (total, pageSize) => {
        const all = Array.from({ length: total }, (_, index) => index);
        const seen: number[] = [];
        for (let number = 1, more = true; more; number += 1) {
          const { offset, limit } = pageWindow({ page: number, pageSize });
          const answer = page(all.slice(offset, offset + limit), { page: number, pageSize }, total);
          seen.push(...answer.items);
          more = answer.hasMore;
        }
        expect(seen).toEqual(all);
      }),
    );
  });

  it('answers match their schema', () => {
    const answer = page(['a'], { page: 3, pageSize: 20 }, 41);
    expect(pageSchema(z.string()).parse(answer)).toEqual({
      items: ['a'],
      page: 3,
      pageSize: 20,
      totalCount: 41,
      totalPages: 3,
      hasMore: false,
    });
    expect(page([], { page: 1, pageSize: 20 }, 0)).toMatchObject({ totalPages: 0, hasMore: false });
  });
});
