# The kernels that the example compilers are shown with.

extern host.rate(str) -> float64;

## y = sqrt(x * x + 1), element by element.
kernel curve(x: float32[n], y: float32[n]) {
    for i in n { y[i] = sqrt(x[i] * x[i] + 1.0); }
}

## y += a * x, element by element.
kernel saxpy(a: float32, x: float32[n], y: float32[n]) {
    for i in n { y[i] = a * x[i] + y[i]; }
}

## Each element of x, in place, as near as low and high allow.
kernel clamp(x: float32[n], low: float32, high: float32) {
    for i in n { x[i] = max(low, min(x[i], high)); }
}

## The sum of the elements.
kernel total(x: float64[n]) -> float64 {
    return sum(i in n: x[i]);
}

## The sum of each row.
kernel row_sums(x: float32[m, n], y: float32[m]) {
    for i in m { y[i] = sum(j in n: x[i, j]); }
}

## c = a b; the rows and columns of a may lie anywhere.
kernel matmul(a: float32[m, k] strides [s, t], b: float32[k, n], c: float32[m, n]) {
    for i in m, j in n { c[i, j] = sum(l in k: a[i, l] * b[l, j]); }
}

## y = x w + bias, or without a bias.
kernel linear(x: float32[m, k], w: float32[k, n], bias: float32[n]?, y: float32[m, n]) {
    for i in m, j in n {
        let start = if given(bias) then bias[j] else 0.0;
        y[i, j] = start + sum(l in k: x[i, l] * w[l, j]);
    }
}

## The products of all pairs, in a new tensor.
kernel outer(x: float32[m], y: float32[n]) -> float32[m, n] {
    for i in m, j in n { result[i, j] = x[i] * y[j]; }
}

## The sum of each block of four.
kernel blocks(x: float32[n], y: float32[n // 4]) where n % 4 == 0 {
    for i in n // 4 { y[i] = sum(j in 4: x[4 * i + j]); }
}

## The sum, the mean or the most of the elements.
kernel reduce(x: float64[n], mode: str) -> float64 {
    if n == 0 { raise ValueError("no elements to {}", mode); }
    if mode == "sum" { return sum(i in n: x[i]); }
    if mode == "mean" { return sum(i in n: x[i]) / float64(n); }
    if mode == "max" { return max(i in n: x[i]); }
    raise ValueError("expected sum, mean or max, got {}", mode);
}

## The elements at these places, in a new tensor.
kernel gather(x: float32[n], places: int64[m]) -> float32[m] {
    for i in m {
        result[i] = x[places[i]];
    }
}

## The place of the first element below 0, or -1.
kernel first_negative(x: float32[n]) -> int64 {
    for i in n {
        if x[i] < 0.0 { return i; }
    }
    return -1;
}

## The sum of the prices in another currency, at the host's rate.
kernel exchange(prices: float64[n], currency: str) -> float64 {
    let rate = host.rate(currency);
    return rate * sum(i in n: prices[i]);
}

## x, scaled by the factor with this number, or by the first.
kernel scale(x: float32[n], factors: [float64], number: int64?) -> float32[n] {
    let factor = factors[if given(number) then number else 0];
    for i in n { result[i] = x[i] * float32(factor); }
}

## x within a range, and what is missing to x.
kernel split(x: float32[n], range: (float32, float32)) -> (float32[n], float32[n]) {
    for i in n {
        result.0[i] = max(range.0, min(x[i], range.1));
        result.1[i] = x[i] - result.0[i];
    }
}

extern host.norm(float32[n], [float64]) -> float64;

## x, divided by its norm, which the host computes.
kernel normalise(x: float32[n], weights: [float64]) -> float32[n] {
    let norm = host.norm(x, weights);
    if norm == 0.0 { raise ValueError("no direction of {} elements", n); }
    for i in n { result[i] = x[i] / float32(norm); }
}

extern host.label(str, int64) -> str;

## The host's label for a number of things.
kernel label(x: [int64], what: str) -> str {
    if len(x) == 0 { raise ValueError("no {}", what); }
    return host.label(what, len(x));
}
