import { z } from 'zod';
import { clampedDecimal, decimal } from './decimal.ts';

interface PagingOptions {
  /** Page size when the client names none; 20 when absent. */
  readonly defaultSize?: number;
  /** Maximum page size; 100 when absent. */
  readonly maxSize?: number;
  /** Specification document 2 refuses sizes out of range, document 1 clamps them. */
  readonly outOfRange?: 'refuse' | 'clamp';
}

/** Page number and size of a query. */
export interface PageQuery {
  /** Counted from 1. */
  readonly page: number;
  readonly pageSize: number;
}

/** The answer of a list route. */
interface Page<T> {
  readonly items: readonly T[];
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  readonly totalPages: number;
  readonly hasMore: boolean;
}

/** Maximum page number; keeps offsets inside safe integers. */
const maxPage = 10_000_000;

/** zod object of the query members `page` and `pageSize`, decimal digits; extend it with the filters of a route. */
export function paging(options: PagingOptions = {}) {
  const { defaultSize = 20, maxSize = 100, outOfRange = 'refuse' } = options;
  const bounded = outOfRange === 'refuse' ? decimal : clampedDecimal;
  return z.object({
    page: bounded({ min: 1, max: maxPage }).default(1).describe('Page, from 1; the first when absent.'),
    pageSize: bounded({ min: 1, max: maxSize })
      .default(defaultSize)
      .describe(`Items per page, 1 to ${maxSize}; ${defaultSize} when absent.`),
  });
}

/** Offset and limit of a page. */
export function pageWindow(query: PageQuery): { readonly offset: number; readonly limit: number } {
  return { offset: (query.page - 1) * query.pageSize, limit: query.pageSize };
}

/** The answer of a list route; `totalCount` is the filtered total. */
export function page<T>(items: readonly T[], query: PageQuery, totalCount: number): Page<T> {
  const totalPages = Math.ceil(totalCount / query.pageSize);
  return {
    items,
    page: query.page,
    pageSize: query.pageSize,
    totalCount,
    totalPages,
    hasMore: query.page < totalPages,
  };
}

/** Schema of a page of `item` for OpenAPI. */
export function pageSchema<S extends z.ZodType>(item: S) {
  return z.object({
    items: z.array(item),
    page: z.int(),
    pageSize: z.int(),
    totalCount: z.int(),
    totalPages: z.int(),
    hasMore: z.boolean(),
  });
}
