import { httpFailure } from "../http/http-failure.ts";
import { ObservationFailed } from "../observer.ts";

/** What was asked for. */
interface Asked {
  namespace: string;
  /** As the cluster names it, for example `deployments`. */
  resource: string;
}

/** Why a cluster couldn't be asked, in words without addresses, tokens or what the cluster itself wrote. */
export function kubernetesFailure(error: unknown, asked: Asked): ObservationFailed {
  if (error instanceof ObservationFailed) return error;
  const status = statusOf(error);
  if (status !== undefined) return new ObservationFailed(refusal(status, asked));
  // The client throws these for what it can't read as a list.
  if (error instanceof SyntaxError || error instanceof TypeError || isUnreadable(error)) {
    return new ObservationFailed(`the cluster answers what is no list of ${asked.resource}`);
  }
  return new ObservationFailed(`the cluster can't be asked: ${httpFailure(error).message}`);
}

/** The HTTP status that the cluster refused with; undefined when it didn't answer at all. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "number" ? error.code : undefined;
}

function refusal(status: number, { namespace, resource }: Asked): string {
  switch (status) {
    case 400:
      return "the cluster refused the label selector (400)";
    case 401:
      return "the cluster doesn't know this service's credential (401): renew its kubeconfig";
    case 403:
      return (
        "the cluster refused this service's credential (403): it needs list on deployments, statefulsets and " +
        `daemonsets in namespace ${namespace}`
      );
    case 404:
      return `the cluster has no ${resource} of apps/v1 (404): is its kubeconfig's server a Kubernetes API server?`;
    case 410:
      return `the cluster forgot a list of ${resource} while it was read, twice (410)`;
    case 429:
      return "the cluster has too much to do (429)";
    default:
      return status >= 500 ? `the cluster failed (${status})` : `the cluster refused to list ${resource} (${status})`;
  }
}

/** What the client's parser throws for a media type other than JSON. */
function isUnreadable(error: unknown): boolean {
  return error instanceof Error && /^The mediaType /.test(error.message);
}
