import type { Verifier } from '#core/crypto/verify.ts';
import { isAppError } from '#core/errors/errors.ts';
import { MAX_EXPORT_LINE_BYTES } from '#core/ledger/export/lines.ts';
import {
  type ExportFault,
  type ExportSummary,
  ExportVerifier,
  findExportFault,
  type TransactionObserver,
} from '#core/ledger/export/verify-export.ts';
import { cliError } from './errors.ts';
import { readLines } from './lines.ts';

/** Outcome of the verification of a file. */
type VerificationResult =
  | { readonly holds: true; readonly summary: ExportSummary }
  | { readonly holds: false; readonly fault: ExportFault };

const isOfLine = (code: string) => code === 'LINE_TOO_LONG' || code === 'LINE_UNFINISHED';

interface VerificationOptions {
  /** Expected hash of docket 0, for callers that know it from another source. */
  readonly genesisHash?: string | undefined;
  readonly observe?: TransactionObserver | undefined;
}

/**
 * Verifies the export of a register while it is read.
 * @throws AppError invalid EXPORT_UNKNOWN for a file that is no export
 */
export async function verifyExport(
  chunks: AsyncIterable<Uint8Array>,
  verifier: Verifier,
  { genesisHash, observe }: VerificationOptions = {},
): Promise<VerificationResult> {
  const verification = new ExportVerifier(verifier, observe);
  let line = 0;
  try {
    for await (const bytes of readLines(chunks, MAX_EXPORT_LINE_BYTES)) {
      line += 1;
      verification.take(bytes);
    }
    const summary = verification.finish();
    if (genesisHash === undefined || genesisHash === summary.genesisHash) return { holds: true, summary };
    const message = `Docket 0 is ${summary.genesisHash}: this is another register`;
    return { holds: false, fault: { line: 2, docketNumber: 0, code: 'GENESIS_MISMATCH', message } };
  } catch (error) {
    const fault = findExportFault(error);
    if (fault !== undefined) return { holds: false, fault };
    if (!isAppError(error, 'unprocessable') || !isOfLine(error.code)) throw error;
    if (line === 0) {
      throw cliError('EXPORT_UNKNOWN', 'The first line is not that of an export', {
        cause: error,
      });
    }
    return { holds: false, fault: { line: line + 1, code: error.code, message: error.message } };
  }
}

/** Summary of a verified export, for people. */
export function summaryText(summary: ExportSummary): string {
  const { dockets, transactions, validators, cosigners } = summary;
  const missing = validators.filter((each) => !cosigners.includes(each));
  const absent = missing.length === 0 ? '' : `; not ${missing.join(', ')}`;
  const rows: readonly (readonly [string, string])[] = [
    ['register', `${summary.registerId} "${summary.name}"`],
    ['installation', summary.networkId],
    ['dockets', `${dockets}, ${transactions} transactions`],
    ['genesis', summary.genesisHash],
    ['head', `${summary.headHash}, sealed ${summary.sealedAt}`],
    ['checkpoint', `signed, cosigned by ${cosigners.length} of ${validators.length} validators${absent}`],
  ];
  const lines = rows.map(([name, value]) => `  ${name.padEnd(13)} ${value}\n`);
  return `Everything verifies.\n${lines.join('')}`;
}

/** Place of the first fault of an export, for people. */
export function faultText({ line, docketNumber, txId, code, message }: ExportFault): string {
  const docket = docketNumber === undefined ? '' : `, docket ${docketNumber}`;
  const transaction = txId === undefined ? '' : `, transaction ${txId}`;
  return `Does not verify: line ${line}${docket}${transaction}: ${code}: ${message}\n`;
}
