export interface ReasonMeaning {
  readonly meaning: string;
  /** What a person does about it. */
  readonly remedy: string;
}

const nothing = 'Nothing to do.';

/** The closed list of reasons of conditions and events (custom-resources.md, notes/operator.md 3.4). */
export const REASONS = {
  Reconciled: { meaning: 'What there is equals what was wanted.', remedy: nothing },
  Progressing: {
    meaning: 'A change is being carried out.',
    remedy: 'Wait; the message says for what.',
  },
  ProgressingWithRetry: {
    meaning: 'A step failed and is tried again with growing pauses.',
    remedy: 'Read the message; it names the step and the error.',
  },
  DependencyNotReady: {
    meaning: 'Something that is needed is not ready or does not answer.',
    remedy: 'Look at the object or service that the message names.',
  },
  InvalidReference: {
    meaning: 'A reference names an object that does not exist.',
    remedy: 'Make the object, or correct the name in the spec.',
  },
  QuorumAtRisk: {
    meaning: 'One more failure would stop sealing, or a member cannot be trusted.',
    remedy: 'Bring back the members that the message names, or add members.',
  },
  QuorumLost: {
    meaning: 'Fewer members answer than must agree; nothing is sealed.',
    remedy:
      'Bring back the nodes or pods of the members that the message names; nothing that was accepted is lost.',
  },
  RolloutBlocked: {
    meaning: 'The next member cannot be replaced without putting the quorum at risk.',
    remedy:
      'Remove what the message names. A single pod is forced by annotating it with chancery.dev/force-roll and its uid.',
  },
  WaitingForPods: {
    meaning: 'Pods are not there or not ready yet.',
    remedy: 'Look at the pods and their events if it lasts longer than a start takes.',
  },
  GenesisPending: {
    meaning: 'The first docket of the register is not sealed yet.',
    remedy: 'Wait; if signatures are missing, status.pendingAttestations lists them.',
  },
  PolicyPending: {
    meaning: 'A change of the policy waits to be sealed or voted for.',
    remedy: 'Vote for the proposals in status.pendingProposals.',
  },
  PolicyRejected: {
    meaning: 'The ledger refused the change of the policy.',
    remedy: 'Change the spec; the message names the rule that was broken.',
  },
  Paused: {
    meaning: 'The annotation chancery.dev/paused is set; nothing is changed.',
    remedy: 'Remove the annotation.',
  },
  Suspended: {
    meaning: 'The spec asks for suspension.',
    remedy: 'Set suspend (of a Tenant: suspended) to false.',
  },
  DeletionBlocked: {
    meaning: 'The object is being deleted and something must happen first.',
    remedy:
      'Do what the message says, or annotate the object with chancery.dev/force-delete and its uid to skip the cleanup.',
  },
  AdoptionRefused: {
    meaning: 'An object of the needed name, or the thing to be adopted, belongs to somebody else.',
    remedy: 'Rename or remove the other object, or correct the id in the spec.',
  },
  ReconcileThrottled: {
    meaning:
      'Somebody else keeps changing what the operator sets in a child; it is put back six times a minute.',
    remedy: 'Stop the other writer that the message names.',
  },
  InstallationConfigInvalid: {
    meaning: 'The configuration of the installation cannot be read; nothing is changed.',
    remedy: 'Correct the values of the chart; the message names the setting.',
  },
  TooFewMembers: {
    meaning: 'There are too few members to tolerate a failure.',
    remedy: 'Set replicas to 4 or more.',
  },
  InUse: {
    meaning: 'Other objects still refer to it.',
    remedy: 'Delete or change the objects that the message names.',
  },
} as const satisfies Readonly<Record<string, ReasonMeaning>>;

export type Reason = keyof typeof REASONS;
