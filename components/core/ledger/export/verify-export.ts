import type { Verifier } from '../../crypto/verify.ts';
import { AppError, isAppError, type Violation, violation } from '../../errors/errors.ts';
import { activeMembers } from '../governance/rules.ts';
import type { SealedRecord } from '../record.ts';
import { ChainVerifier, type SealedDocket } from '../verification/chain.ts';
import { type FaultLocation, faultOf, findFaultLocation } from '../verification/fault.ts';
import { type ExportHeader, type ExportLine, parseExportLine } from './lines.ts';

/** Summary of a verified export. */
export interface ExportSummary {
  readonly registerId: string;
  readonly name: string;
  /** The installation that created the register. */
  readonly networkId: string;
  readonly dockets: number;
  readonly transactions: number;
  readonly genesisHash: string;
  readonly headHash: string;
  /** Timestamp of the last docket. */
  readonly sealedAt: string;
  /** Members of the validator set after the last docket, and those that cosigned the checkpoint. */
  readonly validators: readonly string[];
  readonly cosigners: readonly string[];
}

/** Place and reason of the first fault of an export. */
export interface ExportFault extends FaultLocation {
  /** Counted from 1. */
  readonly line: number;
  readonly code: string;
  readonly message: string;
}

/** A transaction that verifies. The certificate of its docket is judged behind its last transaction. */
export interface ExportedTransaction {
  readonly record: SealedRecord;
  readonly payload: Uint8Array;
  readonly docketNumber: number;
  /** Place in the docket, from 0. */
  readonly index: number;
  /** The docket's timestamp. */
  readonly sealedAt: string;
}

/** Takes each transaction in its order. May throw like faultOf, which ends the verification. */
export type TransactionObserver = (transaction: ExportedTransaction) => void;

const refuse = (message: string): Violation[] => [violation('EXPORT_INVALID', message)];

/**
 * Verifies an export line by line with memory for one docket (see ChainVerifier). The first fault throws AppError
 * `unprocessable`; findExportFault gives its place. A first line that is not that of an export throws `invalid`
 * EXPORT_UNKNOWN.
 */
export class ExportVerifier {
  readonly #verifier: Verifier;
  readonly #observe: TransactionObserver | undefined;
  #line = 0;
  #docket: { readonly line: number; readonly header: SealedDocket['header'] } | undefined;
  #header: ExportHeader | undefined;
  #chain: ChainVerifier | undefined;
  #genesisHash = '';
  #cosigners: readonly string[] | undefined;

  constructor(verifier: Verifier, observe?: TransactionObserver) {
    this.#verifier = verifier;
    this.#observe = observe;
  }

  /** Takes the next line, without its newline. */
  take(bytes: Uint8Array): void {
    this.#line += 1;
    this.#guard(() => this.#accept(this.#parse(bytes)));
  }

  /** Ends the export. Throws when it is not complete. */
  finish(): ExportSummary {
    const chain = this.#chain;
    if (chain === undefined) throw new AppError('invalid', 'EXPORT_UNKNOWN', 'The file is empty');
    return this.#guard(() => {
      const cosigners = this.#cosigners;
      const { head } = chain;
      if (cosigners === undefined || head === undefined) {
        throw faultOf(refuse('The export ends before its checkpoint: it is not whole'));
      }
      return {
        registerId: chain.registerId,
        name: chain.rules.name,
        networkId: chain.networkId,
        dockets: chain.height,
        transactions: chain.transactionCount,
        genesisHash: this.#genesisHash,
        headHash: head.hash,
        sealedAt: head.timestamp,
        validators: activeMembers(chain.rules).map(({ validatorId }) => validatorId),
        cosigners,
      };
    });
  }

  #parse(bytes: Uint8Array): ExportLine {
    try {
      const line = parseExportLine(bytes);
      if (this.#line > 1 || line.kind === 'header') return line;
    } catch (error) {
      if (!isAppError(error, 'invalid')) throw error;
      if (this.#line > 1) throw faultOf(refuse(error.message));
      throw new AppError('invalid', 'EXPORT_UNKNOWN', 'The first line is not that of an export', {
        cause: error,
      });
    }
    throw new AppError('invalid', 'EXPORT_UNKNOWN', 'The first line is not that of an export');
  }

  #accept(line: ExportLine): void {
    if (this.#cosigners !== undefined) throw faultOf(refuse('There is a line behind the checkpoint'));
    const chain = this.#chain;
    if (chain === undefined || line.kind === 'header') this.#begin(line);
    else if (line.kind === 'transaction') this.#take(chain, line);
    else if (chain.missing > 0)
      throw faultOf(refuse(`${chain.missing} transactions of the docket are missing`));
    else if (line.kind === 'docket') this.#open(chain, line.docket);
    else this.#end(chain, line);
  }

  #begin(line: ExportLine): void {
    if (line.kind !== 'header') throw faultOf(refuse('The first line is missing'));
    if (this.#header !== undefined) throw faultOf(refuse('A header line appears again within the export'));
    this.#header = line.header;
    this.#chain = new ChainVerifier(line.header.registerId, this.#verifier);
  }

  #open(chain: ChainVerifier, docket: SealedDocket): void {
    const announced = this.#header?.dockets ?? 0;
    if (chain.height >= announced) throw faultOf(refuse('There are more dockets than announced'));
    this.#docket = { line: this.#line, header: docket.header };
    chain.open(docket);
    if (chain.height === 0) this.#genesisHash = docket.header.hash;
  }

  #end(chain: ChainVerifier, line: Extract<ExportLine, { kind: 'checkpoint' }>): void {
    const announced = this.#header?.dockets ?? 0;
    if (chain.height !== announced || chain.transactionCount !== line.transactions) {
      const said = `${announced} dockets with ${line.transactions} transactions`;
      const found = `${chain.height} with ${chain.transactionCount}`;
      throw faultOf(refuse(`The export announces ${said} and has ${found}`));
    }
    this.#cosigners = chain.judgeCheckpoint(line.note);
  }

  #take(chain: ChainVerifier, line: Extract<ExportLine, { kind: 'transaction' }>): void {
    if (chain.missing === 0) throw faultOf(refuse('The transaction is of no docket'));
    const { payload } = line;
    const record = chain.take(line.record, payload);
    const docket = this.#docket?.header;
    if (docket !== undefined) {
      const { docketNumber, timestamp: sealedAt, transactionIds } = docket;
      this.#observe?.({
        record,
        payload,
        docketNumber,
        index: transactionIds.length - chain.missing - 1,
        sealedAt,
      });
    }
    if (chain.missing === 0) chain.close();
  }

  /** Adds the place to a refusal: the transaction's line, else the docket's, else the current one. */
  #guard<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      const place = findFaultLocation(error);
      if (place === undefined || !isAppError(error)) throw error;
      const { kind, code, message, violations } = error;
      const details = { place: this.#locate(place) };
      throw new AppError(kind, code, message, { cause: error, violations, details });
    }
  }

  #locate(place: FaultLocation): FaultLocation & { readonly line: number } {
    const docket = this.#docket;
    if (docket === undefined) return { ...place, line: this.#line };
    const { docketNumber, transactionIds } = docket.header;
    if (place.docketNumber === undefined) {
      const missing = this.#chain?.missing ?? 0;
      const txId = transactionIds[transactionIds.length - missing];
      return missing > 0 ? { docketNumber, txId, line: this.#line } : { line: this.#line };
    }
    const position = place.txId === undefined ? -1 : transactionIds.indexOf(place.txId);
    return { ...place, line: docket.line + 1 + position };
  }
}

/** Finds place and reason in a refusal; undefined for any other error. */
export function findExportFault(error: unknown): ExportFault | undefined {
  const place: (FaultLocation & { readonly line?: number }) | undefined = findFaultLocation(error);
  if (place?.line === undefined || !isAppError(error)) return undefined;
  const { code, message } = error;
  return { ...place, line: place.line, code, message };
}
