interface ReasonMeaning {
  readonly meaning: string;
  /** What a person does about the reason. */
  readonly remedy: string;
}

const nothing = 'Nothing to do.';

/** The closed, published list of reasons of conditions and events. */
export const REASONS = {
  Reconciled: { meaning: 'The actual state equals the desired state.', remedy: nothing },
  Progressing: {
    meaning: 'A change is being carried out.',
    remedy: 'Wait; the message names what is outstanding.',
  },
  ProgressingWithRetry: {
    meaning: 'A step failed and is retried with exponential backoff.',
    remedy: 'Read the message; it names the step and the error.',
  },
  DependencyNotReady: {
    meaning: 'A dependency is not ready or does not answer.',
    remedy: 'Look at the object or service that the message names.',
  },
  InvalidReference: {
    meaning: 'A reference names an object that does not exist.',
    remedy: 'Create the object, or correct the name in the spec.',
  },
  QuorumAtRisk: {
    meaning: 'One more failure would stop sealing, or a member cannot be trusted.',
    remedy: 'Bring back the members that the message names, or add members.',
  },
  QuorumLost: {
    meaning: 'Fewer members answer than must agree; nothing is sealed.',
    remedy:
      'Bring back the nodes or pods of the members that the message names; accepted transactions are not lost.',
  },
  RolloutBlocked: {
    meaning: 'The next member cannot be replaced without putting the quorum at risk.',
    remedy:
      'Remove the obstacle that the message names. To force a single pod, annotate it with chancery.dev/force-roll and its uid.',
  },
  WaitingForPods: {
    meaning: 'Pods are missing or not ready yet.',
    remedy: 'If it lasts longer than a start, look at the pods and their events.',
  },
  GenesisPending: {
    meaning: 'The first docket of the register is not sealed yet.',
    remedy: 'Wait; if signatures are missing, status.pendingAttestations lists them.',
  },
  PolicyPending: {
    meaning: 'A change of the policy waits for votes or for its docket.',
    remedy: 'Vote for the proposals in status.pendingProposals.',
  },
  PolicyRejected: {
    meaning: 'The register refused the change of the policy.',
    remedy: 'Change the spec; the message names the violated rule.',
  },
  Paused: {
    meaning: 'The annotation chancery.dev/paused is set; the operator changes nothing.',
    remedy: 'Remove the annotation.',
  },
  Suspended: {
    meaning: 'The spec asks for suspension.',
    remedy: 'Set suspend (of a Tenant: suspended) to false.',
  },
  DeletionBlocked: {
    meaning: 'The object is being deleted; the message names the step that comes first.',
    remedy:
      'Follow the message, or annotate the object with chancery.dev/force-delete and its uid to skip the cleanup.',
  },
  AdoptionRefused: {
    meaning: 'An object of the needed name, or the resource to adopt, belongs to another owner.',
    remedy: 'Rename or remove the other object, or correct the id in the spec.',
  },
  ReconcileThrottled: {
    meaning:
      'Another writer keeps changing fields that the operator sets in a child; they are restored at most six times a minute.',
    remedy: 'Stop the other writer that the message names.',
  },
  InstallationConfigInvalid: {
    meaning: 'The description of the installation cannot be read; the operator changes nothing.',
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
