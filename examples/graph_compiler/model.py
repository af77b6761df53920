def forward(x, w, bias):
    y = matmul(x, w)
    y = add(y, bias)
    y = relu(y)

    # the program that runs the model has this function
    y = host.clip(y)

    # the price comes from a module that the library carries
    y = priced(y, "apple")
    return softmax(y)
