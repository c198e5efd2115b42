import {
  type ContextName,
  type ContextUse,
  findContext,
  findContextOfPath,
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

/**
 * Empty or absent is the primary key, then a name of the list, then a raw path; `undefined` when it is neither.
 * A raw path to the key of a context has the use of that context, unless that is `signing`.
 */
export function resolveDerivation(text: string | undefined): Derivation | undefined {
  if (text === undefined || text === '') {
    return { path: slotPath(PRIMARY_SLOT), context: undefined, use: 'primary' };
  }
  const context = findContext(text);
  if (context !== undefined) return { path: slotPath(context.slot), context: context.name, use: context.use };
  const path = parseRawPath(text);
  if (path === undefined) return undefined;
  const use = findContextOfPath(path)?.use ?? 'raw';
  return { path, context: undefined, use: use === 'signing' ? 'raw' : use };
}
