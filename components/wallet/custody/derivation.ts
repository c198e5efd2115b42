import {
  type ContextName,
  type ContextUse,
  findContext,
  PRIMARY_SLOT,
  parseRawPath,
  slotPath,
} from './contexts.ts';

/** What a caller's `derivationPath` means. */
export interface Derivation {
  readonly path: string;
  /** the named context; absent for the primary key and raw paths */
  readonly context: ContextName | undefined;
  readonly use: ContextUse | 'primary' | 'raw';
}

/** Empty or absent is the primary key, then a name of the list, then a raw path; `undefined` when it is neither. */
export function resolveDerivation(text: string | undefined): Derivation | undefined {
  if (text === undefined || text === '') {
    return { path: slotPath(PRIMARY_SLOT), context: undefined, use: 'primary' };
  }
  const context = findContext(text);
  if (context !== undefined) return { path: slotPath(context.slot), context: context.name, use: context.use };
  const path = parseRawPath(text);
  return path === undefined ? undefined : { path, context: undefined, use: 'raw' };
}
